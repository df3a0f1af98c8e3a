// The conversations of chat requests: how messages are read, and what each kind of template gets.
#include "src/server/conversation.h"

#include <doctest/doctest.h>

namespace infer {
namespace {

ChatPromptRequest parsed(const std::string& messages, const std::string& more = "") {
  RequestContext context;
  context.n_vocab = 100;
  return parse_conversation(parse_json_object("{\"messages\": " + messages + more + "}", {.depth = 64}), context);
}

// The name of the invalid member.
std::string wrong(const std::string& messages, const std::string& more = "") {
  try {
    parsed(messages, more);
  } catch (const ApiError& error) {
    CHECK(error.status() == 400);
    return error.param();
  }
  return "nothing";
}

TemplateTraits taking(bool objects, bool strings) {
  TemplateTraits traits;
  for (ContentForms* forms : {&traits.system, &traits.user, &traits.assistant, &traits.tool}) forms->text = true;
  traits.object_arguments = objects;
  traits.string_arguments = strings;
  return traits;
}

Json fitted(const std::string& messages, const TemplateTraits& traits) {
  Conversation conversation = parsed(messages).conversation;
  fit_to_template(conversation, traits);
  return conversation.messages;
}

// The arguments that a template with these traits gets.
Json arguments(const std::string& given, const TemplateTraits& traits) {
  return fitted(
      "[{\"role\": \"assistant\", \"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": " + given + "}}]}]",
      traits)[0]["tool_calls"][0]["function"]["arguments"];
}

const char* kTwoCalls = R"([{"role": "user", "content": "x"},
    {"role": "assistant", "tool_calls": [{"function": {"name": "f"}}, {"id": "own", "function": {"name": "g"}}]},
    {"role": "tool", "tool_call_id": "own", "content": "g"}, {"role": "tool", "content": [{"type": "text", "text": "f"}]}])";

TEST_CASE("conversation: what clients leave out or send as null") {
  const Json messages = parsed(R"([{"role": "developer", "content": "a"},
      {"role": "assistant", "content": null, "refusal": null, "function_call": null, "reasoning_content": null,
       "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]},
      {"role": "tool", "tool_call_id": "1", "content": null},
      {"role": "assistant", "content": "b", "tool_calls": null}, {"role": "assistant", "content": "c", "tool_calls": []}])",
                               R"(, "add_generation_prompt": false)")
                            .conversation.messages;
  CHECK(messages[0] == Json::parse(R"({"role": "system", "content": "a"})"));
  CHECK(messages[1] == Json::parse(R"({"role": "assistant", "content": "", "tool_calls": [
      {"id": "1", "function": {"name": "f", "arguments": "{}"}, "type": "function"}]})"));
  CHECK(messages[2] == Json::parse(R"({"role": "tool", "tool_call_id": "1", "content": ""})"));
  CHECK(messages[3] == Json::parse(R"({"role": "assistant", "content": "b"})"));
  CHECK(messages[4] == Json::parse(R"({"role": "assistant", "content": "c"})"));
}

TEST_CASE("conversation: invalid messages are named") {
  CHECK(wrong(R"([{"role": "user"}])") == "messages[0].content");
  CHECK(wrong(R"([{"role": "system", "content": null}])") == "messages[0].content");
  const auto wrong_call = [](const std::string& call) {
    return wrong("[{\"role\": \"assistant\", \"tool_calls\": [{\"function\": {\"name\": \"f\"}}, " + call + "]}]");
  };
  CHECK(wrong_call("5") == "messages[0].tool_calls[1]");
  CHECK(wrong_call("{}") == "messages[0].tool_calls[1].function");
  CHECK(wrong_call("{\"id\": 5, \"function\": {\"name\": \"f\"}}") == "messages[0].tool_calls[1].id");
  CHECK(wrong_call("{\"function\": {}}") == "messages[0].tool_calls[1].function.name");
  CHECK(wrong_call("{\"function\": {\"name\": \"f\", \"arguments\": 5}}") ==
        "messages[0].tool_calls[1].function.arguments");
}

TEST_CASE("conversation: arguments take the form that the template reads") {
  const TemplateTraits objects = taking(true, false), both = taking(true, true), strings = taking(false, true);
  for (const TemplateTraits& traits : {objects, both, taking(false, false)}) {
    CHECK(arguments(R"("{\"b\": 1.0, \"a\": [null]}")", traits).dump() == R"({"b":1.0,"a":[null]})");
    CHECK(arguments(R"({"a": 1})", traits) == Json{{"a", 1}});
    CHECK(arguments(R"("")", traits) == Json::object());
    CHECK(arguments("null", traits) == Json::object());
  }
  CHECK(arguments(R"("{\"b\":  1}")", strings) == "{\"b\":  1}");
  CHECK(arguments(R"({"a": 1})", strings) == "{\"a\":1}");
  for (const char* no_object : {R"("{\"a\":")", R"("[1]")", R"("words")"}) {
    CHECK(arguments(no_object, both) == Json::parse(no_object));
    CHECK(arguments(no_object, strings) == Json::parse(no_object));
    try {
      arguments(no_object, objects);
      FAIL("no error");
    } catch (const ApiError& error) {
      CHECK(error.param() == "messages[0].tool_calls[0].function.arguments");
      CHECK(error.status() == 400);
    }
  }
  const std::string deep = "\"" + std::string(5000, '[') + "\"";
  CHECK(arguments(deep, both) == Json::parse(deep));
}

TEST_CASE("conversation: text parts") {
  const char* messages = R"([{"role": "system", "content": "s"},
      {"role": "user", "content": [{"type": "text", "text": "What is"}, {"type": "text", "text": "the best book"}]}])";
  TemplateTraits traits = taking(true, true);
  CHECK(fitted(messages, traits)[1]["content"] == "What is\nthe best book");
  traits.user.parts = true;
  CHECK(fitted(messages, traits)[1]["content"].size() == 2);
  traits.system = {false, true};
  CHECK(fitted(messages, traits)[0]["content"] == Json::parse(R"([{"type": "text", "text": "s"}])"));
}

TEST_CASE("conversation: ids are generated if the template needs them") {
  TemplateTraits traits = taking(true, true);
  Json messages = fitted(kTwoCalls, traits);
  CHECK(!messages[1]["tool_calls"][0].contains("id"));
  traits.needs_call_ids = true;
  messages = fitted(kTwoCalls, traits);
  const std::string made = messages[1]["tool_calls"][0]["id"];
  CHECK(made.size() == 9);
  CHECK(messages[1]["tool_calls"][1]["id"] == "own");
  CHECK(messages[2]["tool_call_id"] == "own");
  CHECK(messages[3]["tool_call_id"] == made);
  CHECK(messages[3]["content"] == "f");
  // Ids in a form that the template does not accept are replaced in calls and in results.
  traits.needs_short_ids = true;
  messages = fitted(kTwoCalls, traits);
  const std::string replaced = messages[1]["tool_calls"][1]["id"];
  CHECK(replaced.size() == 9);
  CHECK(replaced != messages[1]["tool_calls"][0]["id"]);
  CHECK(messages[2]["tool_call_id"] == replaced);
}

TEST_CASE("conversation: an assistant's message at the end is the beginning of the answer") {
  const std::string user = R"([{"role": "user", "content": "x"}, )", begun = R"({"role": "assistant", "content": "y"})";
  CHECK(parsed(user + begun + "]").continue_answer);
  CHECK(!parsed(R"([{"role": "user", "content": "x"}])").continue_answer);
  CHECK(!parsed(user + begun + "]", R"(, "add_generation_prompt": false)").continue_answer);
  CHECK(!parsed(user + begun + "]", R"(, "continue_final_message": false)").continue_answer);
  const ChatPromptRequest said = parsed(user + begun + "]", R"(, "continue_final_message": true)");
  CHECK((said.conversation.continue_final_message && !said.continue_answer));
  CHECK(!parsed(user + R"({"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}])").continue_answer);
  CHECK(wrong(user + begun + ", " + begun + "]") == "messages");
  CHECK(wrong(user + begun + "]", R"(, "continue_final_message": true, "add_generation_prompt": true)") ==
        "add_generation_prompt");
}

}  // namespace
}  // namespace infer
