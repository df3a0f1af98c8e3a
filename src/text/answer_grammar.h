// What an answer must look like: the content held to a grammar, a schema, a pattern or a choice, tool calls held to
// their tools, and the reasoning before them free. Written as one grammar of the whole answer, so that one token mask
// does everything. Plain data and free functions; any thread.
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

// Holds the content of an answer.
struct ContentConstraint {
  enum class Kind { kNone, kGrammar, kJsonSchema, kRegex, kChoice };
  Kind kind = Kind::kNone;
  std::string source;                // what set it, for messages; not part of the constraint
  std::string text;                  // a grammar in GBNF, the JSON text of a schema, or a regular expression
  std::vector<std::string> choices;  // of kChoice
  bool compact = false;              // kJsonSchema: no spaces or line breaks between tokens
  bool lenient = false;              // kJsonSchema: keywords that cannot be enforced are passed over
  // kGrammar: the text is free until one of these words, tokens or patterns, with which the grammar begins.
  bool lazy = false;
  std::vector<std::string> triggers;
  std::vector<grammar::PatternTrigger> trigger_patterns;
  std::vector<TokenId> trigger_tokens;
};

// Which calls an answer may contain.
struct CallConstraint {
  enum class Mode {
    kFree,      // calls are not looked at
    kAllowed,   // content, calls or both; a call that begins is a valid one
    kRequired,  // calls and nothing else
  };
  Mode mode = Mode::kFree;
  nlohmann::ordered_json tools;  // those that may be called, as for ToolSet
  bool several = true;
};

// The reasoning with which an answer may begin.
struct ReasoningStart {
  std::string close;                                     // the prompt has opened it: it ends with this tag
  std::vector<std::pair<std::string, std::string>> may;  // tags that may open and close it
};
// For an answer to `prompt`. `template_source` shows which tags the model knows.
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

// The grammar of the answers. `format`: of the model's template; null outside chats. `warnings` takes what a lenient
// schema passes over. Throws Error(kInvalidArgument), which says what cannot be enforced, and where.
std::shared_ptr<const grammar::Grammar> compile_answer_grammar(const AnswerConstraint& constraint,
                                                               const Tokenizer& tokenizer, const ToolCallFormat* format,
                                                               std::vector<std::string>* warnings,
                                                               const grammar::Limits& limits = {});

}  // namespace infer
