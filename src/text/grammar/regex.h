// The regular expressions of JSON schemas (ECMAScript in Unicode mode) as expressions of a grammar, so matching never
// backtracks. What is not regular (lookaround, back-references) or needs tables (\p) is refused. Free functions.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "src/text/grammar/rules.h"

namespace infer::grammar {

struct LengthRange {
  uint32_t min = 0, max = kUnbounded;  // in code points
};

// Writes one character of a set as a string of some notation spells it.
using Speller = std::function<ExprId(const CodePoints& set)>;

// The contents of a string in which the pattern matches somewhere. The pattern's own lengths must be within `length`,
// or it must repeat a single character class; other combinations are refused. Throws Error(kInvalidArgument) with a
// message that begins with `place`.
ExprId parse_regex(Rules& rules, std::string_view pattern, const LengthRange& length, const std::string& place,
                   const Speller& speller);

// The texts that the whole pattern matches, not JSON-escaped. Throws as parse_regex() does.
ExprId parse_text_regex(Rules& rules, std::string_view pattern, const std::string& place);

}  // namespace infer::grammar
