// Calls in notations other than JSON are held to the schemas of their tools.
#include <doctest/doctest.h>

#include "ggml-like/error.h"
#include "src/text/answer_grammar.h"
#include "src/text/tool_calls/call_problems.h"
#include "tests/unit/text/grammar_support.h"
#include "tests/unit/text/tool_call_support.h"

namespace infer {
namespace {

using nlohmann::ordered_json;

// A template that writes `begin`, the calls and `end` after the content.
ToolCallFormat format_of(const std::string& begin, const std::string& call, const std::string& end) {
  return find_tool_call_format(ChatTemplate::parse(
      "{%- for m in messages -%}<|{{ m.role }}|>\n{{ m.content or '' }}{%- if m.tool_calls -%}{{ '" + begin +
      "' }}{%- for c in m.tool_calls -%}{%- set f = c.function -%}" + call + "{%- if not loop.last -%}{{ ', ' }}" +
      "{%- endif -%}{%- endfor -%}{{ '" + end +
      "' }}{%- endif -%}<|end|>\n{% endfor -%}{%- if add_generation_prompt -%}<|assistant|>\n{% endif -%}"));
}

ToolCallFormat tagged() {
  return format_of(
      "<calls>\\n",
      "{{ '<f=' + f.name + '>\n' }}{%- for k, v in f.arguments.items() -%}"
      "{{ '<p=' + k + '>\n' + (v if v is string else v | tojson) + '\n</p>\n' }}{%- endfor -%}{{ '</f>' }}",
      "\\n</calls>");
}

ToolCallFormat python() {
  return format_of("<|call|>[",
                   "{{ f.name }}({%- for k, v in f.arguments.items() -%}{{ k }}={%- if v is string -%}'{{ v }}'"
                   "{%- else -%}{{ v }}{%- endif -%}{%- if not loop.last -%}{{ ', ' }}{%- endif -%}{%- endfor -%})",
                   "]<|end_call|>");
}

ToolCallFormat bare() {
  return format_of("",
                   "<|c>call:{{ f.name }}{{ '{' }}{%- for k, v in f.arguments.items() -%}{{ k }}:{%- if v is string "
                   "-%}<|q|>{{ v }}<|q|>{%- else -%}{{ v }}{%- endif -%}{%- if not loop.last -%},{%- endif -%}"
                   "{%- endfor -%}{{ '}' }}<c|>",
                   "");
}

// Of a call to the tool f with one parameter, p.
class Calls {
 public:
  Calls(ToolCallFormat format, const std::string& schema, bool strict = true) : format_(std::move(format)) {
    AnswerConstraint constraint;
    ordered_json parameters = {{"type", "object"}, {"required", {"p"}}, {"additionalProperties", false}};
    parameters["properties"]["p"] = ordered_json::parse(schema);
    constraint.calls.mode = CallConstraint::Mode::kRequired;
    constraint.calls.tools = ordered_json::array(
        {{{"type", "function"}, {"function", {{"name", "f"}, {"strict", strict}, {"parameters", parameters}}}}});
    static const Tokenizer tokenizer = test::tokenizer_with({"<|end|>"});
    grammar_ = compile_answer_grammar(constraint, tokenizer, &format_, &warnings);
  }

  std::string operator()(const std::string& value) const {
    using Kind = ToolCallFormat::Kind;
    REQUIRE((format_.kind == Kind::kTagged || format_.kind == Kind::kPython || format_.kind == Kind::kBare));
    return test::result_of(*grammar_, format_.kind == Kind::kTagged
                                          ? "<calls>\n<f=f>\n<p=p>\n" + value + "\n</p>\n</f>\n</calls>"
                                      : format_.kind == Kind::kPython ? "<|call|>[f(p=" + value + ")]<|end_call|>"
                                                                      : "<|c>call:f{p:" + value + "}<c|>");
  }

  std::vector<std::string> warnings;

 private:
  ToolCallFormat format_;
  std::shared_ptr<const grammar::Grammar> grammar_;
};

constexpr const char* kNested = R"({"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "object",
  "additionalProperties": false, "required": ["b"], "properties": {"b": {"type": "integer", "maximum": 9},
  "a": {"enum": ["x", null]}}}})";

}  // namespace

TEST_CASE("strings between tags are held to lengths, patterns and formats") {
  const Calls any(tagged(), R"({"type": "string"})");
  CHECK(any("a < b </p> c") == "accept");
  const Calls length(tagged(), R"({"type": "string", "minLength": 2, "maxLength": 3})");
  CHECK(length("é!") == "accept");
  CHECK(length("abc") == "accept");
  CHECK(length("a") == "reject");
  CHECK(length("abcd") == "reject");
  CHECK(length("<b>") == "reject");
  const Calls pattern(tagged(), R"({"type": "string", "pattern": "[0-9]"})");
  CHECK(pattern("a \"7\"\nb") == "accept");
  CHECK(pattern("none") == "reject");
  const Calls date(tagged(), R"({"type": "string", "format": "date"})");
  CHECK(date("2024-02-29") == "accept");
  CHECK(date("2024-02-30") == "reject");
  const Calls either(tagged(), R"({"anyOf": [{"type": "string", "maxLength": 2}, {"enum": ["<long>"]}]})");
  CHECK(either("ab") == "accept");
  CHECK(either("<long>") == "accept");
  CHECK(either("abc") == "reject");
}

TEST_CASE("patterns that cannot be enforced between tags are refused, or passed over with a warning") {
  for (const char* schema :
       {R"({"type": "string", "pattern": "^<x"})", R"x({"type": "string", "pattern": "(?=x)"})x"}) {
    CAPTURE(schema);
    CHECK_THROWS_WITH(Calls(tagged(), schema), doctest::Contains("tools[0].function.parameters#/properties/p"));
    const Calls lenient(tagged(), schema, false);
    CHECK(lenient.warnings.size() == 1);
    CHECK(lenient("anything") == "accept");
  }
}

TEST_CASE("values in Python are held to their schemas") {
  const Calls nested(python(), kNested);
  CHECK(nested("[{'b': 3}]") == "accept");
  CHECK(nested("[{'b': 3, 'a': 'x'}, {\"b\": -1, \"a\": None}]") == "accept");
  CHECK(nested("[]") == "reject");
  CHECK(nested("[{'b': 30}]") == "reject");
  CHECK(nested("[{'a': 'x'}]") == "reject");
  CHECK(nested("[{'b': 3, 'a': 'y'}]") == "reject");
  CHECK(nested("[{'b': 3, 'c': 1}]") == "reject");
  CHECK(nested("[{'b': 3}, {'b': 3}, {'b': 3}]") == "reject");
  const Calls text(python(), R"({"type": "string", "pattern": "^[a'\\n]{2}$"})");
  CHECK(text("'a\\''") == "accept");
  CHECK(text("\"'\\n\"") == "accept");
  CHECK(text("'aaa'") == "reject");
  CHECK(text("'ab'") == "reject");
  const Calls tree(python(), R"({"$ref": "#/properties/p/$defs/t", "$defs": {"t": {"type": "array", "items":
    {"anyOf": [{"type": "boolean"}, {"$ref": "#/properties/p/$defs/t"}]}}}})");
  CHECK(tree("[True, [[False]], []]") == "accept");
  CHECK(tree("[True, [1]]") == "reject");
  const Calls tuple(python(),
                    R"({"type": "array", "prefixItems": [{"type": "null"}, {"type": "boolean"}], "items": false})");
  CHECK(tuple("[None, True]") == "accept");
  CHECK(tuple("[True]") == "reject");
  const Calls map(python(), R"({"type": "object", "additionalProperties": {"type": "integer"}})");
  CHECK(map("{'any': 1, 'b': 2}") == "accept");
  CHECK(map("{'any': 'x'}") == "reject");
  const Calls any(python(), "{}");
  CHECK(any("{'a': [1, None, 'x']}") == "accept");
}

TEST_CASE("values without quotes are held to their schemas") {
  const Calls nested(bare(), kNested);
  CHECK(nested("[{b:3}]") == "accept");
  CHECK(nested("[{a:<|q|>x<|q|>,b:3},{a:null,b:4}]") == "accept");  // keys in the order of the template
  CHECK(nested("[{b:3,a:null}]") == "reject");
  CHECK(nested("[{b:30}]") == "reject");
  CHECK(nested("[]") == "reject");
  const Calls text(bare(), R"({"type": "string", "maxLength": 3})");
  CHECK(text("<|q|>abc<|q|>") == "accept");
  CHECK(text("<|q|>abcd<|q|>") == "reject");
  CHECK(text("abc") == "reject");
}

TEST_CASE("what is wrong with calls") {
  const ordered_json tools = ordered_json::parse(R"([{"function": {"name": "f"}}])");
  const ToolCallFormat format = tagged();
  const auto problems = [&](std::string_view content, const std::vector<WrittenCall>& calls) {
    return call_problems(format, ToolSet(tools), content, calls);
  };
  CHECK(problems("Hello.", {{"f", "{\"a\": 1}"}}).empty());
  const std::vector<std::string> marker = problems("See <calls> there", {});
  REQUIRE(marker.size() == 1);
  CHECK(marker[0] == "No call follows the marker in the content: <calls> there");
  const std::vector<std::string> wrong = problems("", {{"g", "{}"}, {"f", "{\"a\": "}, {"f", "[]"}});
  REQUIRE(wrong.size() == 3);
  CHECK(wrong[0] == "The tool g was not offered.");
  CHECK(wrong[1].starts_with("The arguments for f are wrong, not JSON at byte 7"));
  CHECK(wrong[2] == "The arguments for f are wrong, they are no object: []");
  CHECK(call_problems(format, ToolSet(), "<calls>", {}).empty());
}

}  // namespace infer
