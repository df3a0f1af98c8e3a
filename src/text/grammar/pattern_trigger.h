// Where a lazy grammar begins: at a word, or where a regular expression says so, as llama.cpp's triggers do. Free
// functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "src/text/grammar/rules.h"

namespace infer::grammar {

// The grammar begins with the first text that `at` matches behind one that `before` matches. Regular expressions.
struct PatternTrigger {
  std::string before;
  bool anywhere = false;  // `before` may follow any text
  std::string at;
};

// Of a pattern in llama.cpp's notation: the grammar begins with what its first capturing group matches, or else with
// the whole match. `whole`: the pattern matches from the beginning of the text on, else anywhere. Throws
// Error(kInvalidArgument) for a group inside another, and for a pattern that goes on behind the group; messages begin
// with `place`.
PatternTrigger read_pattern_trigger(std::string_view pattern, bool whole, const std::string& place);

// The texts in which nothing is triggered, and those of them behind which a trigger may come.
struct TriggerTexts {
  ExprId free = kNoId, before = kNoId;
};
// Throws Error(kInvalidArgument) for patterns that are wrong or too large, and for one that matches the empty text.
TriggerTexts trigger_texts(Rules& rules, std::span<const PatternTrigger> patterns, std::span<const std::string> words,
                           const std::string& place);

}  // namespace infer::grammar
