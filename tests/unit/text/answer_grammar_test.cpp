// What the answers to a constrained request may be: content, calls, and the reasoning before them.
#include "src/text/answer_grammar.h"

#include <doctest/doctest.h>

#include "ggml-like/error.h"
#include "src/text/answer_grammar_cache.h"
#include "src/text/grammar/word_search.h"
#include "tests/unit/text/grammar_support.h"
#include "tests/unit/text/tool_call_support.h"

namespace infer {
namespace {

using Mode = CallConstraint::Mode;
using nlohmann::ordered_json;

constexpr const char* kHermes = R"({%- for m in messages -%}<|im_start|>{{ m.role }}
{{ m.content or '' }}{%- if m.tool_calls -%}{%- for c in m.tool_calls -%}
{{ '\n<tool_call>\n{"name": "' + c.function.name + '", "arguments": ' + c.function.arguments | tojson }}}
</tool_call>{%- endfor -%}{%- endif -%}<|im_end|>
{% endfor %}{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}{# </think> #})";

const ordered_json& tools() {
  static const ordered_json all = ordered_json::parse(R"([
    {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {
      "a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a"], "additionalProperties": false}}},
    {"type": "function", "function": {"name": "now"}}])");
  return all;
}

const Tokenizer& bytes_only() {
  static const Tokenizer tokenizer = test::tokenizer_with({"<|im_end|>"});
  return tokenizer;
}

const ToolCallFormat& hermes() {
  static const ToolCallFormat format = find_tool_call_format(ChatTemplate::parse(kHermes));
  return format;
}

std::string result(const AnswerConstraint& constraint, const std::string& text) {
  return test::result_of(*compile_answer_grammar(constraint, bytes_only(), &hermes(), nullptr), text);
}

AnswerConstraint content(ContentConstraint::Kind kind, std::string text) {
  AnswerConstraint constraint;
  constraint.content.kind = kind;
  constraint.content.text = std::move(text);
  return constraint;
}

AnswerConstraint calls(Mode mode, bool several = true) {
  AnswerConstraint constraint;
  constraint.calls = {mode, tools(), several};
  return constraint;
}

const std::string kAdd = "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>";

TEST_CASE("word search: words within words and across each other") {
  const auto found = [](const std::vector<std::string>& words, bool anchored, const std::string& text) {
    const grammar::WordSearch search(words, anchored);
    std::vector<size_t> ends;
    uint32_t state = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      state = search.next(state, static_cast<uint8_t>(text[i]));
      if (search.found(state)) ends.push_back(i);
    }
    return ends;
  };
  CHECK(found({"abab", "b", ""}, false, "ababab") == std::vector<size_t>{1, 3, 5});
  CHECK(found({"aab"}, false, "aaab\xff") == std::vector<size_t>{3});
  CHECK(found({"ab", "b"}, true, "abb") == std::vector<size_t>{1});
  CHECK(found({"ab"}, true, "cab").empty());
}

TEST_CASE("answer grammar: kinds of content") {
  using Kind = ContentConstraint::Kind;
  const AnswerConstraint schema = content(Kind::kJsonSchema, R"({"type": "array", "items": {"type": "boolean"}})");
  CHECK(result(schema, "[true, false]") == "accept");
  CHECK(result(schema, "[true, 1") == "reject");
  const AnswerConstraint regex = content(Kind::kRegex, "[a-z]+@(x|y)\\.org\\n?");
  CHECK(result(regex, "me@y.org") == "accept");
  CHECK(result(regex, "me@y.org\n") == "accept");
  CHECK(result(regex, " me@y.org") == "reject");
  CHECK(result(regex, "me@z") == "reject");
  CHECK(result(content(Kind::kGrammar, "root ::= \"a\" root | \"b\""), "aab") == "accept");
  AnswerConstraint choice = content(Kind::kChoice, "");
  choice.content.choices = {"red", "reddish", "blue"};
  CHECK(result(choice, "red") == "accept");
  CHECK(result(choice, "reddi") == "prefix");
  CHECK(result(choice, "green") == "reject");
}

TEST_CASE("answer grammar: a lazy grammar begins with its trigger") {
  AnswerConstraint lazy = content(ContentConstraint::Kind::kGrammar, "root ::= \"<x>\" [0-9]+ \"</x>\"");
  lazy.content.lazy = true;
  lazy.content.triggers = {"<x>"};
  CHECK(result(lazy, "any <<x text") == "accept");
  CHECK(result(lazy, "any <x>12") == "prefix");
  CHECK(result(lazy, "any <x>12</x>") == "accept");
  CHECK(result(lazy, "any <x>no") == "reject");
  CHECK(result(lazy, "any <x>12</x> more") == "reject");
}

TEST_CASE("answer grammar: a lazy grammar begins where a pattern says so") {
  AnswerConstraint lazy = content(ContentConstraint::Kind::kGrammar, "root ::= \"<f\" [a-z] \">\" [0-9]+ \"!\"");
  lazy.content.lazy = true;
  const auto with = [&](std::string_view pattern, bool whole) {
    lazy.content.trigger_patterns = {grammar::read_pattern_trigger(pattern, whole, "[t]")};
    return lazy;
  };
  for (const AnswerConstraint& anywhere : {with("<f[a-z]>", false), with("[\\s\\S]*?(<f[a-z]>)[\\s\\S]*", true)}) {
    CHECK(result(anywhere, "any <f< <f1> \xFFtext") == "accept");
    CHECK(result(anywhere, "any <fa>12") == "prefix");
    CHECK(result(anywhere, "any <fa>12!") == "accept");
    CHECK(result(anywhere, "<fa>12!") == "accept");
    CHECK(result(anywhere, "any <fa>no") == "reject");
    CHECK(result(anywhere, "any <fa>no <fa>12!") == "reject");
    CHECK(result(anywhere, "any <fa>12! more") == "reject");
  }
  for (const AnswerConstraint& first : {with("(<f[a-z]>)[\\s\\S]*", true), with("^<f[a-z]>", false)}) {
    CHECK(result(first, "<fa>12!") == "accept");
    CHECK(result(first, "<fa>no") == "reject");
    CHECK(result(first, "any <fa>no") == "accept");
  }
  const AnswerConstraint behind = with("<a>\\s*(<f[a-z]>)", false);
  CHECK(result(behind, "x <a>  <fb>3!") == "accept");
  CHECK(result(behind, "x <a>  <fb>no") == "reject");
  CHECK(result(behind, "<fb>no <a> and <fb>no") == "accept");
  AnswerConstraint both = behind;
  both.content.triggers = {"<fz>"};
  CHECK(result(both, "<fz>1!") == "accept");
  CHECK(result(both, "<fz>no") == "reject");
  CHECK(result(both, "<fb>no") == "accept");
  CHECK(both.key() != behind.key());
  CHECK_THROWS_WITH(with("(?:x(y))", false), doctest::Contains("[t]: expected a capturing group outside"));
  CHECK_THROWS_WITH(with("(x)y", false), doctest::Contains("ends with its capturing group"));
  CHECK_THROWS_WITH(result(with("x*", false), ""), doctest::Contains("matches the empty text"));
  CHECK_THROWS_WITH(result(with("(?=x)", false), ""), doctest::Contains("lookaround"));
  CHECK_THROWS_WITH(result(with("([ab]*a[ab]{13}c)", false), ""), doctest::Contains("4,000 states"));
}

TEST_CASE("answer grammar: reasoning comes first and is not constrained") {
  AnswerConstraint constraint = content(ContentConstraint::Kind::kJsonSchema, R"({"type": "integer"})");
  constraint.reasoning = reasoning_start("...assistant\n<think>\n", "", hermes());
  CHECK(constraint.reasoning.close == "</think>");
  CHECK(result(constraint, "let me <b>see</b></think>\n\n42") == "accept");
  CHECK(result(constraint, "let me see") == "prefix");
  CHECK(result(constraint, "hm</think>no") == "reject");
  constraint.reasoning = reasoning_start("...assistant\n", kHermes, hermes());
  CHECK(constraint.reasoning.may.size() == 1);
  CHECK(result(constraint, "<think>hm</think>42") == "accept");
  CHECK(result(constraint, "42") == "accept");
  CHECK(result(constraint, "hm") == "reject");
  // The prompt has closed it.
  CHECK(reasoning_start("...<think>\n\n</think>\n\n", kHermes, hermes()).may.empty());
}

TEST_CASE("answer grammar: allowed calls do not constrain content, and are valid once begun") {
  const AnswerConstraint allowed = calls(Mode::kAllowed);
  CHECK(result(allowed, "Hello <tool") == "accept");
  CHECK(result(allowed, "Let me add.\n" + kAdd) == "accept");
  CHECK(result(allowed, kAdd + "\n" + kAdd) == "accept");
  CHECK(result(allowed, kAdd + " and so on") == "reject");
  CHECK(result(allowed, "Hello <tool_call> there") == "reject");
  CHECK(result(allowed, "<tool_call>\n{\"name\": \"sub\"") == "reject");
  CHECK(result(allowed, "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": \"x\"") == "reject");
  CHECK(result(allowed, "<tool_call>\n{\"name\": \"now\", \"arguments\": {\"any\": [1]}}\n</tool_call>") == "accept");
}

TEST_CASE("answer grammar: required calls") {
  const AnswerConstraint required = calls(Mode::kRequired);
  CHECK(result(required, kAdd) == "accept");
  CHECK(result(required, "Hello") == "reject");
  CHECK(result(required, "") == "prefix");
  CHECK(result(required, kAdd + "\n" + kAdd) == "accept");
  CHECK(result(calls(Mode::kRequired, false), kAdd + "\n" + kAdd) == "reject");
}

TEST_CASE("answer grammar: content that is constrained to a schema, or calls") {
  AnswerConstraint both = calls(Mode::kAllowed);
  both.content = content(ContentConstraint::Kind::kJsonSchema, R"({"type": "integer"})").content;
  CHECK(result(both, "7") == "accept");
  CHECK(result(both, kAdd) == "accept");
  CHECK(result(both, "Hello") == "reject");
}

TEST_CASE("answer grammar: strict tools are constrained to their whole schema") {
  AnswerConstraint constraint = calls(Mode::kAllowed);
  constraint.calls.tools = ordered_json::parse(R"([{"function": {"name": "f", "parameters": {
      "type": "object", "properties": {"a": {"type": "array", "uniqueItems": true}}}}}])");
  std::vector<std::string> warnings;
  compile_answer_grammar(constraint, bytes_only(), &hermes(), &warnings);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] == "tools[0].function.parameters#/properties/a: uniqueItems is not enforced");
  constraint.calls.tools[0]["function"]["strict"] = true;
  try {
    compile_answer_grammar(constraint, bytes_only(), &hermes(), nullptr);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) ==
          "[schema] tools[0].function.parameters#/properties/a: expected keywords that can be enforced, found "
          "uniqueItems");
  }
}

// Where the markers are control tokens, only these begin a call.
TEST_CASE("answer grammar: markers that are control tokens") {
  const Tokenizer tokenizer = test::tokenizer_with({"<|im_end|>"}, {"<tool_call>", "</tool_call>", "<other>"});
  const auto format = std::make_shared<ChatFormat>(find_chat_format(ChatTemplate::parse(kHermes), tokenizer));
  CHECK(format->markers == std::vector<TokenId>{tokenizer.find("<tool_call>"), tokenizer.find("</tool_call>")});
  AnswerGrammarCache cache(tokenizer, static_cast<size_t>(tokenizer.n_tokens()) + 100, format);
  const auto mask = AnswerGrammarCache::mask(cache.get(calls(Mode::kAllowed), true))->clone();
  const auto allows = [&](TokenId token) {
    return (mask->allowed()[static_cast<size_t>(token) / 64] >> (token % 64) & 1) != 0;
  };
  const auto accept = [&](const std::string& text) {
    for (const TokenId token : tokenizer.encode(text, false, true)) {
      CAPTURE(tokenizer.piece(token, true));
      REQUIRE(allows(token));
      mask->accept(token);
    }
  };
  CHECK(mask->allowed().size() * 64 >= static_cast<size_t>(tokenizer.n_tokens()) + 100);
  CHECK(allows(tokenizer.find("<tool_call>")));
  CHECK(!allows(tokenizer.find("</tool_call>")));
  CHECK(!allows(tokenizer.find("<other>")));
  CHECK(allows(tokenizer.find("<|im_end|>")));
  accept(kAdd.substr(0, kAdd.size() - 12));
  CHECK(!allows(tokenizer.find("<|im_end|>")));
  CHECK(allows(tokenizer.find("</tool_call>")));
  accept("</tool_call>");
  CHECK(allows(tokenizer.find("<|im_end|>")));
}

TEST_CASE("answer grammar: equal constraints share what is compiled") {
  AnswerGrammarCache cache(bytes_only(), 0, nullptr);
  using Kind = ContentConstraint::Kind;
  AnswerConstraint one = content(Kind::kRegex, "a+");
  const auto masks = cache.get(one, false).masks;
  one.content.source = "elsewhere";
  CHECK(cache.get(one, false).masks == masks);
  for (int i = 0; i < 40; ++i) cache.get(content(Kind::kRegex, "b{" + std::to_string(i) + "}"), false);
  CHECK(cache.get(one, false).masks != masks);
  // Kinds with the same text are different.
  CHECK(cache.get(content(Kind::kGrammar, "root ::= \"a\""), false).masks !=
        cache.get(content(Kind::kRegex, "root ::= \"a\""), false).masks);
}

}  // namespace
}  // namespace infer
