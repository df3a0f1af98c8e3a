// Small templates of every kind of format, what their answers mean, and hostile answers. Needs no reference data.
#include <doctest/doctest.h>

#include <string>

#include "src/text/chat_template.h"
#include "tests/unit/text/tool_call_support.h"

namespace infer {
namespace {

using nlohmann::ordered_json;
using test::ParsedMessage;
using test::ParserSetup;

ordered_json offered_tools() {
  return ordered_json::parse(R"([
    {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {
      "city": {"type": "string"}, "days": {"type": "integer"}, "zone": {"$ref": "#/$defs/zone"},
      "list": {"type": "array"}, "any": {}, "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
      "$defs": {"zone": {"enum": ["1", "2"]}}}}},
    {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}])");
}

// A template that writes `begin`, the calls and `end` after the content. `call` has the variables f and loop.
std::string template_of(const std::string& begin, const std::string& call, const std::string& end,
                        const std::string& separator = "", const std::string& content = "{{ m.content or '' }}") {
  return "{%- for m in messages -%}<|{{ m.role }}|>\n" + content + "{%- if m.tool_calls -%}{{ '" + begin +
         "' }}{%- for c in m.tool_calls -%}{%- set f = c.function -%}" + call + "{%- if not loop.last -%}{{ '" +
         separator + "' }}{%- endif -%}{%- endfor -%}{{ '" + end +
         "' }}{%- endif -%}<|end|>\n{% endfor -%}{%- if add_generation_prompt -%}<|assistant|>\n{% endif -%}";
}

const std::string kJsonCall = R"({"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson }}})";
const std::string kTaggedCall =
    "{{ '<f=' + f.name + '>\n' }}{%- for k, v in f.arguments.items() -%}"
    "{{ '<p=' + k + '>\n' + (v if v is string else v | tojson) + '\n</p>\n' }}{%- endfor -%}{{ '</f>' }}";

std::string python_template() {
  return template_of("<|call|>[",
                     "{{ f.name }}({%- for k, v in f.arguments.items() -%}{{ k }}={%- if v is string -%}'{{ v }}'"
                     "{%- else -%}{{ v }}{%- endif -%}{%- if not loop.last -%}{{ ', ' }}{%- endif -%}{%- endfor -%})",
                     "]<|end_call|>", ", ");
}

ParserSetup setup_of(const std::string& source, const ordered_json& tools = offered_tools()) {
  const ChatTemplate chat_template = ChatTemplate::parse(source);
  Conversation conversation;
  conversation.messages = {{{"role", "user"}, {"content", "hi"}}};
  conversation.tools = tools;
  return {find_tool_call_format(chat_template), ToolSet(tools), prompt_of_answer(chat_template, conversation)};
}

ParserSetup object_setup() { return setup_of(template_of("", "<call>\n" + kJsonCall + "\n</call>", "", "\\n")); }
ParserSetup tagged_setup() { return setup_of(template_of("<calls>\\n", kTaggedCall, "\\n</calls>", "\\n")); }

// The same whole and byte by byte; cut off anywhere it gives beginnings.
ParsedMessage parsed(const ParserSetup& setup, const std::string& text) {
  CAPTURE(text);
  const ParsedMessage whole = test::parse_whole(setup, text);
  CHECK(test::printed(test::parse_bytes(setup, text)) == test::printed(whole));
  for (size_t cut = 0; cut < text.size(); ++cut) {
    CAPTURE(cut);
    const ParsedMessage begun = test::parse_bytes(setup, text.substr(0, cut), true);
    CHECK_MESSAGE(test::is_beginning(begun, whole), test::printed(begun));
  }
  return whole;
}

std::string meaning(const ParserSetup& setup, const std::string& text) { return test::printed(parsed(setup, text)); }

const std::string kTwoCalls = R"(content [Hi.] reasoning [] weather({"city": "Rome"}) now({}))";

}  // namespace

TEST_CASE("calls in every kind of format") {
  using Kind = ToolCallFormat::Kind;
  struct Case {
    Kind kind;
    std::string source, text;
  };
  const Case cases[] = {
      {Kind::kObject, template_of("", "<call>\n" + kJsonCall + "\n</call>", "", "\\n"),
       "Hi.\n<call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</call>\n<call>{\"name\":\"now\","
       "\"arguments\":{}}</call>"},
      {Kind::kObject, template_of("[CALLS][", kJsonCall, "]", ", "),
       R"(Hi.[CALLS][{"arguments": {"city": "Rome"}, "name": "weather", "id": 3}, {"name": "now"}])"},
      {Kind::kObject, template_of(" functools[", kJsonCall, "]", ", "),
       R"(Hi. functools[{"name": "weather", "arguments": "{\"city\": \"Rome\"}"}, {"name": "now", "arguments": {}}])"},
      {Kind::kJson,
       template_of("<|calls|>[", R"({"{{ f.name }}": {{ f.arguments | tojson }}})", "]<|end_calls|>", ", "),
       R"(Hi.<|calls|>[{"weather": {"city": "Rome"}}, {"now": {}}]<|end_calls|>)"},
      {Kind::kJson,
       template_of("<|calls|>", "<|begin|>{{ c.id }}<|name|>{{ f.name }}<|args|>{{ f.arguments | tojson }}<|stop|>",
                   ""),
       "Hi.<|calls|><|begin|>a<|name|>weather<|args|>{\"city\": "
       "\"Rome\"}<|stop|><|begin|>b<|name|>now<|args|>{}<|stop|>"},
      {Kind::kTagged, template_of("<calls>\\n", kTaggedCall, "\\n</calls>", "\\n"),
       "Hi.\n<calls>\n<f=weather>\n<p=city>\nRome\n</p>\n</f>\n<f=now>\n</f>\n</calls>"},
      {Kind::kBare,
       template_of("",
                   "<|c>call:{{ f.name }}{{ '{' }}{%- for k, v in f.arguments.items() -%}{{ k }}:{%- if v is string "
                   "-%}<|q|>{{ v }}<|q|>{%- else -%}{{ v }}{%- endif -%}{%- if not loop.last -%},{%- endif -%}"
                   "{%- endfor -%}{{ '}' }}<c|>",
                   ""),
       "Hi.<|c>call:weather{city:<|q|>Rome<|q|>}<c|><|c>call:now{}<c|>"},
      {Kind::kPython, python_template(), "Hi.<|call|>[weather(city='Rome'), now()]<|end_call|>"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const ParserSetup setup = setup_of(c.source);
    CHECK(setup.format.kind == c.kind);
    CHECK(meaning(setup, c.text) == kTwoCalls);
  }
}

TEST_CASE("a format without markers begins an answer, and only with a tool that is offered") {
  const ParserSetup setup = setup_of(template_of("", kJsonCall, ""));
  CHECK(meaning(setup, R"({"name": "weather", "arguments": {"city": "Rome"}})") ==
        R"(content [] reasoning [] weather({"city": "Rome"}))");
  for (const std::string text : {R"({"name": "Rome", "arguments": {}})", R"(See {"name": "now", "arguments": {}})",
                                 R"({"name": 3, "arguments": {}})", R"({"x": [1, 2]} and more)"}) {
    CHECK(meaning(setup, text) == "content [" + text + "] reasoning []");
  }
}

TEST_CASE("recipients that the prompt begins") {
  const ParserSetup setup = setup_of(
      "{%- for m in messages -%}<|{{ m.role }}|>\n{%- if m.content -%}>>>all\n{{ m.content }}{%- endif -%}"
      "{%- for c in m.tool_calls or [] -%}>>>{{ c.function.name }}\n{{ c.function.arguments | tojson }}{%- endfor -%}"
      "<|end|>\n{% endfor -%}{%- if add_generation_prompt -%}<|assistant|>\n>>>{%- endif -%}");
  CHECK(meaning(setup, "all\nHi.>>>weather\n{\"city\": \"Rome\"}>>>now\n{}") == kTwoCalls);
  CHECK(meaning(setup, "now\n{}") == "content [] reasoning [] now({})");
  CHECK(meaning(setup, "all\nIf 3 >>> 2") == "content [If 3 >>> 2] reasoning []");
}

TEST_CASE("reasoning between tags that only the template has") {
  const ParserSetup setup = setup_of(
      "{%- for m in messages -%}<|begin|>{{ m.role }}{%- if m.reasoning_content -%}<|muse|>{{ m.reasoning_content "
      "}}<|end|>"
      "\n<|begin|>{{ m.role }}{%- endif -%}{%- if m.content -%}<|content|>{{ m.content }}<|end|>{%- endif -%}"
      "{%- if m.tool_calls -%}<|calls|>{%- for c in m.tool_calls -%}<|id|>{{ c.id }}<|name|>{{ c.function.name "
      "}}<|args|>"
      "{{ c.function.arguments | tojson }}<|stop|>{%- endfor -%}<|end_calls|>{%- endif -%}\n{% endfor -%}"
      "{%- if add_generation_prompt -%}<|begin|>assistant{%- endif -%}");
  const std::string begin = "<|muse|>Hm.<|end|>\n<|begin|>assistant";
  CHECK(meaning(setup, begin + "<|content|>Hi.<|end|>") == "content [Hi.] reasoning [Hm.]");
  CHECK(meaning(setup, begin + "<|calls|><|id|>a<|name|>now<|args|>{}<|stop|><|end_calls|>") ==
        "content [] reasoning [Hm.] now({})");
  CHECK(meaning(setup, "<|content|>Hi.<|end|>") == "content [Hi.] reasoning []");
}

TEST_CASE("messages of gpt-oss") {
  const ParserSetup setup = setup_of(
      "{%- for m in messages -%}<|start|>{{ m.role }}{%- for c in m.tool_calls or [] %} to=functions.{{ "
      "c.function.name }}"
      "<|channel|>commentary json<|message|>{{ c.function.arguments | tojson }}<|call|>{%- endfor -%}{%- if m.content "
      "-%}"
      "<|channel|>final<|message|>{{ m.content }}<|end|>{%- endif -%}{%- endfor -%}"
      "{%- if add_generation_prompt -%}<|start|>assistant{%- endif -%}");
  CHECK(setup.format.kind == ToolCallFormat::Kind::kHarmony);
  CHECK(meaning(setup,
                "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary "
                "to=functions.now <|constrain|>json<|message|>{}<|call|>") == "content [] reasoning [Hm.] now({})");
  CHECK(meaning(setup, "<|channel|>final<|message|>Hi < you<|return|>") == "content [Hi < you] reasoning []");
  CHECK(meaning(setup, " to=functions.now<|message|>{\"a\": x\"<|call|>") ==
        "content [] reasoning [] now({\"a\": x\")");
  CHECK(meaning(setup, "Just text, to=nobody") == "content [Just text, to=nobody] reasoning []");
}

TEST_CASE("content that only looks like a call") {
  const ParserSetup setup = object_setup();
  for (const std::string text : {"<", "<call", "a <call> b", "<call>\n{\"name\": weather\"}",
                                 "<call>{\"arguments\": {}}</call>", "<call>[1]", "```json\n{\"name\": \"now\"}\n```\n",
                                 "a\n\n b \n", "<call>{\"name\": \"now\", \"argu", "\xF0\x9F\x98\x80 é"}) {
    CHECK(meaning(setup, text) == "content [" + text + "] reasoning []");
  }
  CHECK(meaning(setup, "<call> is a tag.\n<call>{\"name\": \"now\", \"arguments\": {}}</call>\n Done.") ==
        "content [<call> is a tag.Done.] reasoning [] now({})");
  CHECK(meaning(setup, "<call>{\"<call>{\"name\": \"now\", \"arguments\": {}}</call>") ==
        "content [<call>{\"] reasoning [] now({})");
  CHECK(parsed(setup_of(template_of("", "<call>" + kJsonCall + "</call>", ""), nullptr),
               "<call>{\"name\": \"now\", \"arguments\": {}}</call>")
            .calls.empty());
  CHECK(setup_of("{%- for m in messages -%}{{ m.content }}{%- endfor -%}").format.kind == ToolCallFormat::Kind::kNone);
}

TEST_CASE("broken arguments stay as they are written") {
  const ParserSetup setup = object_setup();
  CHECK(meaning(setup, "<call>{\"name\": \"weather\", \"arguments\": {\"city\": Rome\"}}</call>Ok") ==
        "content [Ok] reasoning [] weather({\"city\": Rome\"}})");
  CHECK(meaning(setup, "<call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Ro") ==
        "content [] reasoning [] weather({\"city\": \"Ro)");
  CHECK(meaning(setup, "<call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}</call>") ==
        "content [] reasoning [] weather({\"city\": \"Rome\"})");
  CHECK(meaning(setup, "<call>{\"name\": \"nothing\", \"arguments\": {}}</call>") ==
        "content [] reasoning [] nothing({})");
}

TEST_CASE("untyped values take their types from the tool") {
  const ParserSetup setup = tagged_setup();
  const auto value = [&](const std::string& name, const std::string& text) {
    const ParsedMessage message = parsed(setup, "<calls><f=weather><p=" + name + ">\n" + text + "\n</p></f></calls>");
    REQUIRE(message.calls.size() == 1);
    const std::string& arguments = message.calls[0].arguments;
    const std::string begin = "{\"" + name + "\": ";
    REQUIRE(arguments.starts_with(begin));
    return arguments.substr(begin.size(), arguments.size() - begin.size() - 1);
  };
  CHECK(value("city", "12") == "\"12\"");
  CHECK(value("city", "a\n\"b\"\\\t</p> <f=x>") == R"("a\n\"b\"\\\t</p> <f=x>")");
  CHECK(value("zone", "1") == "\"1\"");
  CHECK(value("days", " 12 ") == "12");
  CHECK(value("days", "soon") == "\"soon\"");
  CHECK(value("list", "[{'a': True, 'it\\'s': None}]") == R"([{"a": true, "it's": null}])");
  CHECK(value("maybe", "null") == "null");
  CHECK(value("maybe", "Rome") == "\"Rome\"");
  CHECK(value("any", "3") == "3");
  CHECK(value("any", "\"3\"") == R"("\"3\"")");
  CHECK(value("other", "x") == "\"x\"");
}

TEST_CASE("arguments in Python") {
  const ParserSetup setup = setup_of(python_template());
  const auto arguments = [&](const std::string& text) {
    const ParsedMessage message = parsed(setup, "<|call|>[weather(" + text + ")]<|end_call|>");
    REQUIRE(message.calls.size() == 1);
    CHECK(message.content == "");
    return message.calls[0].arguments;
  };
  CHECK(arguments("city=\"Rome\", days = 5, any=None") == R"x({"city": "Rome", "days": 5, "any": null})x");
  CHECK(arguments("list=[{'a': True, \"b\": \"x, y=1)\"}, (1)]") ==
        R"x({"list": "[{'a': True, \"b\": \"x, y=1)\"}, (1)]"})x");
  CHECK(arguments("list=[{'a': True}, []], city=''") == R"x({"list": [{"a": true}, []], "city": ""})x");
  CHECK(arguments("city='it's 'so', no)', days=-1.5") == R"x({"city": "it's 'so', no)", "days": -1.5})x");
  CHECK(arguments(R"x(city='a\'b\n\d\u0041')x") == R"x({"city": "a'b\n\\d\u0041"})x");
  CHECK(arguments("city='a\n\"b\"'") == R"x({"city": "a\n\"b\""})x");
}

TEST_CASE("ids") {
  const ParserSetup setup = object_setup();
  const auto calls =
      parsed(setup, "<call>{\"id\": \"x1\", \"name\": \"now\"}</call><call>{\"name\": \"now\"}</call>").calls;
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].id.starts_with("call_"));
  CHECK(calls[0].id.size() == 29);
  CHECK(calls[0].id != calls[1].id);
  const ParserSetup written =
      setup_of(template_of("",
                           "<call>{\"id\": \"{{ c.id }}\", \"name\": \"{{ f.name }}\", \"arguments\": "
                           "{{ f.arguments | tojson }}}</call>",
                           ""));
  const auto own = parsed(written, "<call>{\"id\": \"x1\", \"name\": \"now\", \"arguments\": {}}</call>").calls;
  REQUIRE(own.size() == 1);
  CHECK(own[0].id == "x1");
  // Deltas that are already out have no place for an id that comes later.
  const auto late = parsed(written, "<call>{\"name\": \"now\", \"arguments\": {}, \"id\": \"x1\"}</call>").calls;
  REQUIRE(late.size() == 1);
  CHECK(late[0].id.starts_with("call_"));
}

TEST_CASE("deltas come as soon as they are decided") {
  const ParserSetup setup = object_setup();
  MessageParser parser(setup.format, setup.tools, setup.prompt, "");
  const auto kinds = [&](std::string_view text) {
    std::string all;
    for (const MessageDelta& d : parser.add(text)) all += "[" + d.name + ":" + d.text + "]";
    return all;
  };
  CHECK(kinds("Hi") == "[:Hi]");
  CHECK(kinds(" ") == "");
  CHECK(kinds("<") == "");
  CHECK(kinds("b>") == "[: <b>]");
  CHECK(kinds("\n<call>{\"name\": \"weather\", \"arguments\": ") == "");
  CHECK(kinds("{") == "[weather:{]");
  CHECK(kinds("\"city\": \"\xC3") == "[:\"city\": \"]");
  CHECK(kinds("\xA9") == "[:\xC3\xA9]");
}

TEST_CASE("hostile answers take linear time") {
  // Quadratic time would show: a test that takes minutes.
  constexpr size_t kBytes = 400'000, kBytesAfter = 40'000;
  const ParserSetup setups[] = {object_setup(), tagged_setup(), setup_of(template_of("", kJsonCall, ""))};
  for (const std::string piece : {"<",
                                  "{",
                                  "[",
                                  "\"",
                                  " ",
                                  "\n",
                                  "<call>",
                                  "<cal",
                                  "<call>{",
                                  "<call>{\"",
                                  "<call>{\"a\": \"",
                                  "<calls>\n<f=",
                                  "<f=now>\n<p=",
                                  "</p>",
                                  "</p>\n",
                                  "</f>",
                                  "<calls><f=weather><p=city>",
                                  "{\"name\":",
                                  "{\"a\":[",
                                  "\xF0\x9F",
                                  "<think>",
                                  "</think",
                                  "\\"}) {
    for (const std::string begin :
         {"", "<call>{\"name\": \"now\", \"arguments\": ", "<calls><f=weather><p=city>", "<think>"}) {
      std::string text = begin;
      while (text.size() < (begin.empty() ? kBytes : kBytesAfter)) text += piece;
      for (const ParserSetup& setup : setups) {
        const ParsedMessage whole = test::parse_whole(setup, text);
        CHECK((whole.content.size() + whole.reasoning.size() > 0 || !whole.calls.empty() || piece == " " ||
               piece == "\n"));
      }
      CHECK(test::parse_bytes(setups[piece[0] == '{'], text.substr(0, kBytesAfter), true).calls.size() < kBytes);
    }
  }
}

}  // namespace infer
