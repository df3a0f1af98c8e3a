// The spellings of numbers between two bounds. Free functions.
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

// Parses JSON's notation without exponent; nullopt if it has more than 16 digits.
std::optional<Decimal> parse_decimal(std::string_view text);

struct NumberRange {
  std::optional<Decimal> min, max;
  bool min_exclusive = false, max_exclusive = false;
};

// Whole numbers without point or exponent. Without a bound they have at most 40 digits.
ExprId integer_between(Rules& rules, const NumberRange& range);
// Numbers with an optional fraction of at most 40 digits, without exponent.
ExprId number_between(Rules& rules, const NumberRange& range);

}  // namespace infer::grammar
