// Detects what a template supports: renders small conversations with words that no template contains, and searches the
// prompt for those words.
#include "src/text/chat_template.h"
#include "src/text/template_probe.h"

namespace infer {
namespace {

using nlohmann::ordered_json;

constexpr const char* kText = "qxuserq";
constexpr const char* kMoreText = "qxmoreq";
constexpr const char* kCallId = "abcdefghi";  // nine letters, which Mistral's templates require

ordered_json message(const char* role, const ordered_json& content) { return {{"role", role}, {"content", content}}; }

Conversation probe(ordered_json messages) {
  Conversation conversation;
  conversation.messages = std::move(messages);
  return conversation;
}

bool has(const std::string& prompt, const char* word) { return prompt.find(word) != std::string::npos; }

ordered_json tool(const char* name) {
  return ordered_json::array({{{"type", "function"},
                               {"function",
                                {{"name", name},
                                 {"description", "qxdescriptionq"},
                                 {"parameters",
                                  {{"type", "object"},
                                   {"properties", {{"qxargumentq", {{"type", "string"}, {"description", "a"}}}}},
                                   {"required", ordered_json::array({"qxargumentq"})}}}}}}});
}

// `id` "": none.
ordered_json call(const ordered_json& arguments, const std::string& id = kCallId) {
  ordered_json entry = {{"type", "function"}, {"function", {{"name", "qxcallq"}, {"arguments", arguments}}}};
  if (!id.empty()) entry["id"] = id;
  return {{"role", "assistant"}, {"content", ""}, {"tool_calls", ordered_json::array({entry})}};
}

ordered_json result(const ordered_json& content) {
  return {{"role", "tool"}, {"name", "qxcallq"}, {"tool_call_id", kCallId}, {"content", content}};
}

Conversation probe_of_tools(ordered_json messages) {
  Conversation conversation = probe(std::move(messages));
  conversation.tools = tool("qxcallq");
  return conversation;
}

// The forms of content that the template renders, in a conversation that `around` builds from the content.
template <typename Around>
ContentForms content_forms(const ChatTemplate& chat_template, Around around) {
  ContentForms forms;
  forms.text = has(probe_prompt(chat_template, around(ordered_json(kText))), kText);
  const ordered_json parts =
      ordered_json::array({{{"type", "text"}, {"text", kText}}, {{"type", "text"}, {"text", kMoreText}}});
  const std::string prompt = probe_prompt(chat_template, around(parts));
  // A template that merely prints the list shows its keys, in the quotes of Python, of JSON, or of JSON in JSON.
  const bool printed = has(prompt, "text': 'qxuserq") || has(prompt, "text\": \"qxuserq") ||
                       has(prompt, "text\":\"qxuserq") || has(prompt, "text\\\": \\\"qxuserq");
  forms.parts = has(prompt, kText) && has(prompt, kMoreText) && !printed;
  return forms;
}

void find_content_forms(const ChatTemplate& chat_template, const ordered_json& arguments, TemplateTraits& traits) {
  const ordered_json user = message("user", "qxq");
  traits.system = content_forms(chat_template, [&](const ordered_json& content) {
    return probe({message("system", content), user});
  });
  traits.user =
      content_forms(chat_template, [&](const ordered_json& content) { return probe({message("user", content)}); });
  traits.assistant = content_forms(chat_template, [&](const ordered_json& content) {
    return probe({user, message("assistant", content), user});
  });
  traits.tool = content_forms(chat_template, [&](const ordered_json& content) {
    return probe_of_tools({user, call(arguments), result(content)});
  });
}

void find_tool_use(const ChatTemplate& chat_template, TemplateTraits& traits) {
  const ordered_json user = message("user", kText);
  const ordered_json object = {{"qxargumentq", "qxvalueq"}}, text = R"({"qxargumentq": "qxvalueq"})";
  const auto see = [&](const ordered_json& messages) {
    const std::string prompt = probe_prompt(chat_template, probe_of_tools(messages));
    traits.tool_calls = traits.tool_calls || has(prompt, "qxvalueq");
    traits.tool_results = traits.tool_results || has(prompt, "qxresultq");
    return prompt;
  };
  // Some templates require a user message at the end, others reject one after a call; try both.
  const auto see_call = [&](const ordered_json& arguments) {
    const std::string whole = see({user, call(arguments), result("qxresultq"), user});
    const std::string begun = see({user, call(arguments)});
    return has(whole, "qxvalueq") ? whole : begun;
  };
  const std::string of_object = see_call(object), of_text = see_call(text);
  see({user, call(object), result("qxresultq")});
  see({user, call(text), result("qxresultq")});
  // A template that merely prints the object shows Python's quotes.
  traits.object_arguments = has(of_object, "qxvalueq") && !has(of_object, "'qxargumentq': 'qxvalueq'");
  traits.string_arguments = has(of_text, "qxvalueq");
  const ordered_json& arguments = traits.object_arguments ? object : text;
  const auto takes_id = [&](const std::string& id) {
    return !probe_prompt(chat_template, probe_of_tools({user, call(arguments, id)})).empty();
  };
  traits.needs_call_ids = takes_id(kCallId) && !takes_id("");
  traits.needs_short_ids = takes_id(kCallId) && !takes_id("call_AbCdEfGhIjKlMnOpQrStUvWx");
  find_content_forms(chat_template, arguments, traits);
}

}  // namespace

TemplateTraits ChatTemplate::traits() const {
  TemplateTraits traits;
  const ordered_json user = message("user", kText);
  const std::string plain = probe_prompt(*this, probe({user}));
  traits.starts_with_bos = plain.starts_with(kProbeBos);
  traits.system_role = has(probe_prompt(*this, probe({message("system", "qxsystemq"), user})), "qxsystemq");

  Conversation with_tools = probe({user});
  with_tools.tools = tool("qxtoolq");
  traits.tools = has(probe_prompt(*this, with_tools), "qxtoolq");
  find_tool_use(*this, traits);

  Conversation thinking = probe({user}), silent = probe({user});
  thinking.variables = {{"enable_thinking", true}};
  silent.variables = {{"enable_thinking", false}};
  const std::string thought = probe_prompt(*this, thinking), unthought = probe_prompt(*this, silent);
  traits.enable_thinking = !thought.empty() && !unthought.empty() && thought != unthought;
  return traits;
}

void set_default_variables(Conversation& conversation, const TemplateTraits& traits) {
  if (!traits.enable_thinking) return;
  ordered_json& variables = conversation.variables;
  if (variables.is_null()) variables = ordered_json::object();
  if (variables.is_object() && !variables.contains("enable_thinking")) variables["enable_thinking"] = true;
}

}  // namespace infer
