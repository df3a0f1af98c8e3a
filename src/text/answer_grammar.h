// The constraints on an answer: its content may have to follow a grammar, schema, pattern or list of choices, its tool
// calls the tools' parameters; the reasoning before them is unconstrained. Compiled into one grammar of the whole
// answer, so that a single token mask enforces everything. Plain data and free functions; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/chat_template.h"
#include "src/text/grammar/grammar.h"
#include "src/text/grammar/pattern_trigger.h"
#include "src/text/ordered_json.h"
#include "src/text/reasoning.h"
#include "src/text/tokenizer.h"
#include "src/text/tool_calls/tool_call_format.h"

namespace infer {

// Constrains the content of an answer.
struct ContentConstraint {
  enum class Kind { kNone, kGrammar, kJsonSchema, kRegex, kChoice };
  Kind kind = Kind::kNone;
  std::string source;                // what set it, for messages; not compared
  std::string text;                  // a grammar in GBNF, the JSON text of a schema, or a regular expression
  std::vector<std::string> choices;  // of kChoice
  bool compact = false;              // kJsonSchema: no spaces or line breaks between tokens
  bool lenient = false;              // kJsonSchema: ignore keywords that cannot be enforced
  // kGrammar: the text is unconstrained until one of these words, tokens or patterns, which starts the grammar.
  bool lazy = false;
  std::vector<std::string> triggers;
  std::vector<grammar::PatternTrigger> trigger_patterns;
  std::vector<TokenId> trigger_tokens;
};

// Which calls an answer may contain.
struct CallConstraint {
  enum class Mode {
    kFree,      // calls are not constrained
    kAllowed,   // content, calls or both; a call, once begun, must be valid
    kRequired,  // only calls
  };
  Mode mode = Mode::kFree;
  nlohmann::ordered_json tools;  // the callable ones, as for ToolSet
  bool several = true;
};

// The reasoning at the start of an answer.
struct ReasoningStart {
  std::string close;                                     // if the prompt has opened the reasoning: the tag that ends it
  std::vector<std::pair<std::string, std::string>> may;  // pairs of tags that may open and close it
};
// For an answer to `prompt`. The tags that the model knows are found in `template_source`.
ReasoningStart reasoning_start(std::string_view prompt, std::string_view template_source, const ToolCallFormat& format);

struct AnswerConstraint {
  ContentConstraint content;
  CallConstraint calls;
  ReasoningStart reasoning;

  bool free() const {
    return content.kind == ContentConstraint::Kind::kNone && calls.mode == CallConstraint::Mode::kFree;
  }
  // Equal for equal constraints.
  std::string key() const;
};

// The grammar of the answers. `format`: of the model's template; null outside chats. `warnings` gets the keywords that
// a lenient schema ignores. Throws Error(kInvalidArgument), saying what cannot be enforced and where.
std::shared_ptr<const grammar::Grammar> compile_answer_grammar(const AnswerConstraint& constraint,
                                                               const Tokenizer& tokenizer, const ToolCallFormat* format,
                                                               std::vector<std::string>* warnings,
                                                               const grammar::Limits& limits = {});

}  // namespace infer
