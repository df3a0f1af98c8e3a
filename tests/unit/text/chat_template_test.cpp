// How a conversation becomes a prompt: variables, continue_final_message, built-in templates, traits.
#include "src/text/chat_template.h"

#include <doctest/doctest.h>

#include <ctime>

#include "tests/unit/text/jinja_support.h"

namespace infer {
namespace {

using nlohmann::ordered_json;

Conversation conversation(const ordered_json& messages) {
  Conversation c;
  c.messages = messages;
  c.bos_token = "<s>";
  c.eos_token = "</s>";
  return c;
}

const ordered_json kTalk = ordered_json::parse(
    R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Bye"}])");

std::string prompt(const char* name, const ordered_json& messages = kTalk) {
  return ChatTemplate::builtin(name).render(conversation(messages));
}

// The prompt of a conversation that ends with the beginning of an answer.
std::string continued(const std::string& source, const std::string& text) {
  Conversation c = conversation({{{"role", "user"}, {"content", "Q"}}, {{"role", "assistant"}, {"content", text}}});
  c.continue_final_message = true;
  return ChatTemplate::parse(source).render(c);
}

}  // namespace

TEST_CASE("a conversation becomes variables") {
  Conversation c = conversation(kTalk);
  const ChatTemplate all = ChatTemplate::parse(
      "{{ messages | length }} {{ tools }} {{ documents }} {{ add_generation_prompt }} {{ bos_token }} {{ eos_token }} "
      "{{ enable_thinking is defined }}");
  CHECK(all.render(c) == "4 None None True <s> </s> False");
  c.tools = ordered_json::array({1});
  c.documents = ordered_json::array();
  c.add_generation_prompt = false;
  c.variables = {{"enable_thinking", true}, {"bos_token", "B"}};
  CHECK(all.render(c) == "4 [1] [] False B </s> True");
  CHECK(all.render_variables({{"messages", "abc"}}) == "3      False");
  CHECK(all.source().starts_with("{{ messages"));
}

TEST_CASE("keys of objects keep their order") {
  CHECK(ChatTemplate::parse("{{ x | tojson }}").render_variables({{"x", {{"z", 1}, {"a", 2}}}}) ==
        R"({"z": 1, "a": 2})");
}

TEST_CASE("the clock can be set") {
  const ChatTemplate dated = ChatTemplate::parse("{{ strftime_now('%d %B %Y') }}");
  CHECK(dated.with_clock(test::recorded_time).render(conversation(kTalk)) == "15 January 2026");
  CHECK(dated.render(conversation(kTalk)).size() > 8);
}

TEST_CASE("a final message is continued") {
  const std::string plain =
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}{% if add_generation_prompt %}<gen>{% endif "
      "%}";
  CHECK(continued(plain, "An old") == "<user>Q</><assistant>An old");
  CHECK(continued(plain, "An old ") == "<user>Q</><assistant>An old ");
  // Text with leading white space is trimmed at both ends, as in apply_chat_template.
  CHECK(continued(plain, " An old ") == "<user>Q</><assistant> An old");
  const std::string trimming = "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}</>{% endfor %}";
  CHECK(continued(trimming, "An old \n") == "<user>Q</><assistant>An old");
  // The last occurrence counts.
  CHECK(continued(plain, "Q") == "<user>Q</><assistant>Q");
  CHECK_THROWS_WITH_AS(
      continued("nothing", "An old"),
      "[template] continue_final_message is set, but the final message does not appear in the rendered chat",
      TemplateError);
  Conversation parts =
      conversation({{{"role", "assistant"},
                     {"content", {{{"type", "text"}, {"text", "one"}}, {{"type", "text"}, {"text", "two"}}}}}});
  parts.continue_final_message = true;
  CHECK(ChatTemplate::parse("{% for p in messages[0].content %}{{ p.text }};{% endfor %}").render(parts) == "one;two");
}

// A naive search would need 10^11 comparisons here.
TEST_CASE("a long final message is found in linear time") {
  const std::string begun = std::string(600000, 'a') + "b";
  const std::clock_t start = std::clock();
  const std::string prompt = continued("{% for m in messages %}{{ m.content }}{% endfor %}{{ 'a' * 1200000 }}", begun);
  CHECK(prompt == "Q" + begun);
  CHECK(std::clock() - start < 4 * CLOCKS_PER_SEC);
}

TEST_CASE("a prompt marks the text of the conversation") {
  Conversation c = conversation({{{"role", "user"}, {"content", "Hi"}}, {{"role", "assistant"}, {"content", " Yes "}}});
  const ChatTemplate plain = ChatTemplate::parse(
      "{{ bos_token }}{% for m in messages %}<user>{{ m.content | trim }}{{ eos_token }}{% endfor %}");
  CHECK(plain.render_marked(c).text == "<s><user>Hi</s><user>Yes</s>");
  CHECK(plain.render_marked(c).from_caller == std::vector<TextRange>{{9, 11}, {21, 24}});
  c.continue_final_message = true;
  CHECK(plain.render_marked(c).text == "<s><user>Hi</s><user>Yes");
  CHECK(plain.render_marked(c).from_caller == std::vector<TextRange>{{9, 11}, {21, 24}});
}

TEST_CASE("anything other than a conversation is refused") {
  const ChatTemplate any = ChatTemplate::parse("x");
  const auto refused = [&](const Conversation& c) {
    try {
      any.render(c);
      return false;
    } catch (const Error& error) {
      return error.code() == ErrorCode::kInvalidArgument;
    }
  };
  CHECK(refused(conversation("text")));
  CHECK(refused(conversation(ordered_json::array({1}))));
  Conversation c = conversation(kTalk);
  c.variables = 1;
  CHECK(refused(c));
  c = conversation(ordered_json::array());
  c.continue_final_message = true;
  CHECK(refused(c));
  c = conversation({{{"role", "assistant"}, {"content", nullptr}}});
  c.continue_final_message = true;
  CHECK(refused(c));
  CHECK_THROWS_AS(any.render_variables(ordered_json::array()), Error);
}

TEST_CASE("an error raised by the template itself can be recognised") {
  const ChatTemplate strict = ChatTemplate::parse("{{ raise_exception('roles must\nalternate') }}");
  try {
    strict.render(conversation(kTalk));
    FAIL("expected an error");
  } catch (const TemplateError& error) {
    CHECK(error.kind() == TemplateError::Kind::kRaised);
    CHECK(error.text() == "roles must\nalternate");
    CHECK(error.code() == ErrorCode::kInvalidFile);
  }
}

TEST_CASE("built-in templates have their formats") {
  CHECK(prompt("chatml") ==
        "<|im_start|>system\nBe "
        "brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello.<|im_end|>\n"
        "<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n");
  CHECK(prompt("llama2") == "<s>[INST] Be brief.\nHi [/INST] Hello. </s>[INST] Bye [/INST]");
  CHECK(prompt("llama2-sys") == "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi [/INST] Hello. </s>[INST] Bye [/INST]");
  CHECK(prompt("llama2-sys-bos") ==
        "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi [/INST] Hello. </s><s>[INST] Bye [/INST]");
  CHECK(prompt("llama3") ==
        "<s><|start_header_id|>system<|end_header_id|>\n\nBe "
        "brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi"
        "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nHello.<|eot_id|><|start_header_id|>user<|end_"
        "header_id|>"
        "\n\nBye<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n");
  CHECK(prompt("mistral-v1") == "<s> [INST] Be brief.\n\nHi [/INST] Hello.</s> [INST] Bye [/INST]");
  CHECK(prompt("mistral-v3") == "<s>[INST] Be brief.\n\nHi[/INST] Hello.</s>[INST] Bye[/INST]");
  CHECK(prompt("mistral-v3-tekken") == "<s>[INST]Be brief.\n\nHi[/INST]Hello.</s>[INST]Bye[/INST]");
  CHECK(prompt("mistral-v7") ==
        "<s>[SYSTEM_PROMPT] Be brief.[/SYSTEM_PROMPT][INST] Hi[/INST] Hello.</s>[INST] Bye[/INST]");
  CHECK(prompt("gemma") ==
        "<s><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\nHello.<end_of_turn>\n"
        "<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n");
  CHECK(prompt("phi3") ==
        "<|system|>\nBe "
        "brief.<|end|>\n<|user|>\nHi<|end|>\n<|assistant|>\nHello.<|end|>\n<|user|>\nBye<|end|>\n<|assistant|>\n");
  CHECK(prompt("zephyr") ==
        "<|system|>\nBe brief.</s>\n<|user|>\nHi</s>\n<|assistant|>\nHello.</s>\n<|user|>\nBye</s>\n<|assistant|>\n");
  CHECK(prompt("vicuna") == "<s>Be brief.\n\nUSER: Hi\nASSISTANT: Hello.</s>\nUSER: Bye\nASSISTANT:");
  CHECK(prompt("deepseek2") == "<s>Be brief.\n\nUser: Hi\n\nAssistant: Hello.</s>User: Bye\n\nAssistant:");
  CHECK(
      prompt("alpaca") ==
      "<s>Be brief.\n\n### Instruction:\nHi\n\n### Response:\nHello.</s>\n\n### Instruction:\nBye\n\n### Response:\n");
  CHECK(prompt("gpt-oss") ==
        "<|start|>system<|message|>Be brief.<|end|><|start|>user<|message|>Hi<|end|><|start|>assistant<|channel|>final"
        "<|message|>Hello.<|end|><|start|>user<|message|>Bye<|end|><|start|>assistant");
}

TEST_CASE("every built-in template accepts every message, also in parts") {
  for (const std::string_view name : ChatTemplate::builtin_names()) {
    CAPTURE(std::string(name));
    CHECK(ChatTemplate::is_builtin(name));
    const ChatTemplate chat_template = ChatTemplate::builtin(name);
    const std::string whole = chat_template.render(conversation(kTalk));
    size_t at = 0;
    for (const ordered_json& message : kTalk) {
      at = whole.find(message["content"].get<std::string>(), at);
      CHECK(at != std::string::npos);
    }
    ordered_json parts = kTalk;
    for (ordered_json& message : parts) message["content"] = {{{"type", "text"}, {"text", message["content"]}}};
    CHECK(chat_template.render(conversation(parts)) == whole);
    // Without the generation prompt the text is a prefix, and the beginning of an answer ends the prompt.
    Conversation begun = conversation(kTalk);
    begun.messages.erase(begun.messages.end() - 1);
    begun.continue_final_message = true;
    CHECK(chat_template.render(begun).ends_with("Hello."));
    const TemplateTraits traits = chat_template.traits();
    CHECK(traits.system_role);
    CHECK((traits.user.parts && traits.user.text && traits.system.parts && traits.assistant.parts));
    CHECK(!traits.tools);
    CHECK(!traits.enable_thinking);
  }
  CHECK(ChatTemplate::builtin_names().size() > 40);
  CHECK(!ChatTemplate::is_builtin("nope"));
  CHECK_THROWS_AS(ChatTemplate::builtin("nope"), Error);
}

TEST_CASE("traits are found by rendering") {
  const auto traits = [](const std::string& source) { return ChatTemplate::parse(source).traits(); };
  CHECK(traits("{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}").starts_with_bos);
  CHECK(!traits("{% for m in messages %}{{ m.content }}{% endfor %}").starts_with_bos);
  CHECK(!traits("{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}{{ m.content "
                "}}{% endfor %}")
             .system_role);
  CHECK(!traits("{% for m in messages %}{{ '' + m.content }}{% endfor %}").user.parts);
  CHECK(!traits("{% for m in messages %}{{ m.content }}{% endfor %}").user.parts);
  CHECK(traits("{% for t in tools or [] %}{{ t | tojson }}{% endfor %}").tools);
  CHECK(!traits("{{ messages[0].content }}").tools);
  CHECK(
      traits("{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}x").enable_thinking);
  const TemplateTraits calls = traits(
      "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}{{ c | tojson }}{% endfor %}{% endfor %}");
  CHECK(calls.tool_calls);
  CHECK(calls.tool_results);
  // Arguments as JSON text only.
  CHECK(traits(
            "{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.arguments + '' }}{% endfor %}{% endfor %}")
            .tool_calls);
  CHECK(calls.object_arguments);
  CHECK(calls.string_arguments);
  CHECK(!calls.needs_call_ids);
  const std::string each_call = "{% for m in messages %}{% for c in m.tool_calls %}";
  const TemplateTraits as_text = traits(each_call + "{{ c.function.arguments }}{% endfor %}{% endfor %}");
  CHECK((!as_text.object_arguments && as_text.string_arguments));
  const TemplateTraits by_item = traits(
      each_call + "{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}{% endfor %}{% endfor %}");
  CHECK((by_item.object_arguments && !by_item.string_arguments));
  CHECK(traits(each_call + "{{ c.id + c.function.name }}{% endfor %}{% endfor %}").needs_call_ids);
  CHECK(traits(each_call + "{{ raise_exception('nine') if c.id | length != 9 }}{{ c.id }}{% endfor %}{% endfor %}")
            .needs_short_ids);
  CHECK(!calls.needs_short_ids);
  // Reading only the first part is not enough; a template may read only parts, or only those of users.
  CHECK(!traits("{% for m in messages %}{{ m.content[0].text }}{% endfor %}").user.parts);
  const TemplateTraits only_parts =
      traits("{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}");
  CHECK((only_parts.user.parts && !only_parts.user.text && only_parts.tool.parts));
  const TemplateTraits mixed = traits(
      "{% for m in messages %}{% if m.role == 'user' and m.content is not string %}{% for p in m.content %}{{ p.text }}"
      "{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}");
  CHECK((mixed.user.parts && mixed.user.text && mixed.system.text && !mixed.system.parts && !mixed.assistant.parts));
  Conversation thinking;
  set_default_variables(thinking, calls);
  CHECK(thinking.variables.is_null());
  TemplateTraits thinks;
  thinks.enable_thinking = true;
  set_default_variables(thinking, thinks);
  CHECK(thinking.variables == ordered_json{{"enable_thinking", true}});
  thinking.variables = {{"enable_thinking", false}};
  set_default_variables(thinking, thinks);
  CHECK(thinking.variables == ordered_json{{"enable_thinking", false}});
  const TemplateTraits none = traits("{{ raise_exception('never') }}");
  CHECK((!none.system_role && !none.tools && !none.tool_calls && !none.user.parts && !none.user.text &&
         !none.enable_thinking));
}

}  // namespace infer
