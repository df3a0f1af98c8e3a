#include "src/text/answer_grammar.h"

#include <optional>
#include <utility>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "src/text/grammar/gbnf.h"
#include "src/text/grammar/json_schema.h"
#include "src/text/grammar/regex.h"
#include "src/text/grammar/schema_compiler.h"
#include "src/text/tool_calls/call_grammar.h"
#include "src/text/tool_calls/call_pattern.h"
#include "src/text/tool_calls/marker_text.h"

namespace infer {
namespace {

using grammar::ExprId;
using Mode = CallConstraint::Mode;

class AnswerGrammarWriter {
 public:
  AnswerGrammarWriter(const AnswerConstraint& constraint, const Tokenizer& tokenizer, const ToolCallFormat* format,
                      std::vector<std::string>* warnings, const grammar::Limits& limits)
      : constraint_(constraint),
        tokenizer_(tokenizer),
        format_(format),
        warnings_(warnings),
        limits_(limits),
        text_(rules_, tokenizer) {}

  grammar::Rules write() {
    // A GBNF grammar replaces rules_, so it must be read first.
    const ExprId content = constrained_content();
    const grammar::RuleId root = rules_.declare("the answer");
    rules_.define(root, whole(content));
    rules_.set_root(root);
    if (schema_) schema_->finish();
    if (calls_) calls_->finish();
    return std::move(rules_);
  }

 private:
  // kNoId: unconstrained.
  ExprId constrained_content() {
    const ContentConstraint& content = constraint_.content;
    switch (content.kind) {
      case ContentConstraint::Kind::kNone:
        return grammar::kNoId;
      case ContentConstraint::Kind::kGrammar:
        return written_grammar();
      case ContentConstraint::Kind::kJsonSchema:
        schema_json_ = grammar::parse_schema_text(content.text, limits_);
        schema_options_ = {content.compact, content.lenient};
        schema_.emplace(rules_, schema_json_, schema_options_, warnings_, limits_);
        return rules_.rule(schema_->rule_of(schema_json_, "#"));
      case ContentConstraint::Kind::kRegex:
        return grammar::parse_text_regex(rules_, content.text, "[regex]");
      case ContentConstraint::Kind::kChoice: {
        std::vector<ExprId> choices;
        for (const std::string& choice : content.choices) choices.push_back(rules_.bytes(choice));
        return rules_.choice(std::move(choices));
      }
    }
    return grammar::kNoId;
  }

  ExprId written_grammar() {
    const ContentConstraint& content = constraint_.content;
    rules_ = grammar::parse_gbnf_rules(
        content.text, [&](std::string_view text) { return tokenizer_.find(text); }, limits_);
    const ExprId written = rules_.rule(rules_.root());
    if (!content.lazy) return written;
    // A token may also start the grammar; if it has text, that text counts as a trigger word.
    std::vector<std::string> words = content.triggers;
    for (const TokenId token : content.trigger_tokens) {
      if (const std::string_view piece = tokenizer_.piece(token, false); !piece.empty()) words.emplace_back(piece);
    }
    if (content.trigger_patterns.empty())
      return rules_.sequence({rules_.without(std::move(words)), rules_.optional(written)});
    const grammar::TriggerTexts texts =
        grammar::trigger_texts(rules_, content.trigger_patterns, words, "[grammar] triggers");
    return rules_.choice({texts.free, rules_.sequence({texts.before, written})});
  }

  ExprId any_text() { return rules_.without({}); }

  ExprId whole(ExprId content) {
    const bool harmony = format_ && format_->kind == ToolCallFormat::Kind::kHarmony;
    if (constraint_.calls.mode == Mode::kFree && !harmony) return with_reasoning(content);
    const nlohmann::ordered_json none = nlohmann::ordered_json::array();
    const bool some = constraint_.calls.mode != Mode::kFree;
    calls_.emplace(rules_, text_, *format_, some ? constraint_.calls.tools : none, warnings_, limits_);
    const bool required = constraint_.calls.mode == Mode::kRequired;
    if (harmony) {
      return calls_->messages(required ? grammar::kNoId : content == grammar::kNoId ? any_text() : content);
    }
    const ExprId calls = calls_->calls(constraint_.calls.several);
    if (required) return with_reasoning(calls);
    if (content == grammar::kNoId) return with_reasoning(calls_->content_and_calls(calls));
    return with_reasoning(rules_.choice({content, calls}));
  }

  ExprId with_reasoning(ExprId rest) {
    const ReasoningStart& reasoning = constraint_.reasoning;
    const ExprId space = few_spaces(rules_);
    if (!reasoning.close.empty()) return rules_.sequence({text_.up_to(reasoning.close), space, rest});
    if (reasoning.may.empty()) return rest;
    std::vector<ExprId> choices;
    for (const auto& [open, close] : reasoning.may) {
      choices.push_back(rules_.sequence({space, text_.literal(open), text_.up_to(close), space}));
    }
    return rules_.sequence({rules_.optional(rules_.choice(std::move(choices))), rest});
  }

  const AnswerConstraint& constraint_;
  const Tokenizer& tokenizer_;
  const ToolCallFormat* format_;
  std::vector<std::string>* warnings_;
  const grammar::Limits& limits_;
  grammar::Rules rules_;
  const MarkerText text_;
  nlohmann::ordered_json schema_json_;
  grammar::SchemaOptions schema_options_;
  std::optional<grammar::SchemaCompiler> schema_;
  std::optional<CallGrammar> calls_;
};

void append(std::string& key, std::string_view text) { key += concat(text.size(), ":") + std::string(text); }

}  // namespace

ReasoningStart reasoning_start(std::string_view prompt, std::string_view template_source,
                               const ToolCallFormat& format) {
  ReasoningStart start;
  std::vector<ReasoningTags> known(reasoning_tags().begin(), reasoning_tags().end());
  if (!format.reasoning_open.empty()) known.push_back({format.reasoning_open, format.reasoning_close});
  const std::string_view end = trimmed(prompt);
  for (const ReasoningTags& tags : known) {
    if (end.ends_with(tags.open)) start.close = tags.close;
    if (end.ends_with(tags.close)) return {};
    if (template_source.find(tags.close) != std::string_view::npos) start.may.emplace_back(tags.open, tags.close);
  }
  if (!start.close.empty()) start.may.clear();
  return start;
}

std::string AnswerConstraint::key() const {
  std::string key = concat(static_cast<int>(content.kind), content.compact, content.lenient, content.lazy,
                           static_cast<int>(calls.mode), calls.several);
  append(key, content.text);
  for (const std::string& choice : content.choices) append(key, choice);
  key += "/";
  for (const std::string& trigger : content.triggers) append(key, trigger);
  for (const TokenId token : content.trigger_tokens) key += concat("/", token);
  for (const grammar::PatternTrigger& pattern : content.trigger_patterns) {
    key += pattern.anywhere ? "*" : "^";
    append(key, pattern.before);
    append(key, pattern.at);
  }
  append(key, calls.tools.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  append(key, reasoning.close);
  for (const auto& [open, close] : reasoning.may) append(key, open + close);
  return key;
}

std::shared_ptr<const grammar::Grammar> compile_answer_grammar(const AnswerConstraint& constraint,
                                                               const Tokenizer& tokenizer, const ToolCallFormat* format,
                                                               std::vector<std::string>* warnings,
                                                               const grammar::Limits& limits) {
  const grammar::Rules rules = AnswerGrammarWriter(constraint, tokenizer, format, warnings, limits).write();
  auto compiled = std::make_shared<const grammar::Grammar>(rules, limits);
  if (compiled->automaton().start() == grammar::kNoId && !compiled->automaton().accepts_empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "[schema] expected a schema that some value satisfies, found one that none does");
  }
  return compiled;
}

}  // namespace infer
