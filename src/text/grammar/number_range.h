// Numbers between two bounds, as texts. Free functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/text/grammar/rules.h"

namespace infer::grammar {

// A decimal number: `scaled` / 10^digits.
struct Decimal {
  int64_t scaled = 0;
  int digits = 0;
};

// From JSON's notation; nullopt if it has more than 15 digits before or after the point.
std::optional<Decimal> parse_decimal(std::string_view text);

struct NumberRange {
  std::optional<Decimal> min, max;
  bool min_exclusive = false, max_exclusive = false;
};

// Whole numbers without point and exponent. Those without a bound have at most 40 digits.
ExprId integer_between(Rules& rules, const NumberRange& range);
// Numbers with an optional fraction of at most 40 digits, without exponent.
ExprId number_between(Rules& rules, const NumberRange& range);

}  // namespace infer::grammar
