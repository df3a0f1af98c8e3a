// Digits of numbers, for both kinds of formatting.
#pragma once

#include <string>

#include "src/text/jinja/value.h"

namespace infer::jinja {

// How a number or text is laid out: [[fill]align][sign][#][0][width][,][.precision][type].
struct Layout {
  std::string fill = " ";
  char align = 0;  // < > ^ =, 0: as the type has it
  char sign = '-';
  bool alternate = false;
  char grouping = 0;  // , or _
  int64_t width = 0;
  int64_t precision = -1;  // not given
  char type = 0;
};

inline constexpr int64_t kMaxPrecision = 1000;

// Digits of |number| in base 2, 8, 10 or 16 by type b o d x X, with 0b and so on when `alternate`.
std::string integer_digits(int64_t number, char type, bool alternate);
// |number| by type e E f F g G %, or as repr() without a type.
std::string float_digits(double number, char type, int64_t precision, bool alternate);
// Separators every three digits (four unless decimal) of the part before the point.
std::string with_grouping(const std::string& digits, char separator, size_t every);

// `sign` and `digits` (with their prefix) or a text, filled to the width. `fallback`: align when none is given.
void append_padded(std::string_view sign, std::string_view body, const Layout& layout, char fallback, Text& out);

}  // namespace infer::jinja
