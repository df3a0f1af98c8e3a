// Regular expressions of JSON schemas: ECMAScript's, in its Unicode mode, as expressions of a grammar. So matching
// never backtracks. What is no regular language (lookaround, back-references) or needs tables (\p) is refused. Free
// functions.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "src/text/grammar/rules.h"

namespace infer::grammar {

struct LengthRange {
  uint32_t min = 0, max = kUnbounded;  // in code points
};

// Writes one character of a set, as it is spelled in a string of some notation.
using Speller = std::function<ExprId(const CodePoints& set)>;

// The inside of a string that the pattern matches somewhere. The pattern must itself be within `length`, or be one
// character class that is repeated; others cannot be combined with lengths. Throws Error(kInvalidArgument); messages
// begin with `place`.
ExprId parse_regex(Rules& rules, std::string_view pattern, const LengthRange& length, const std::string& place,
                   const Speller& speller);

// The texts that the whole pattern matches, as they are. Throws as parse_regex() does.
ExprId parse_text_regex(Rules& rules, std::string_view pattern, const std::string& place);

}  // namespace infer::grammar
