// Formats numbers, for both % and str.format().
#pragma once

#include <string>

#include "src/text/jinja/value.h"

namespace infer::jinja {

// How a number or text is laid out: [[fill]align][sign][#][0][width][,][.precision][type].
struct Layout {
  std::string fill = " ";
  char align = 0;  // < > ^ =, or 0 for the type's default
  char sign = '-';
  bool alternate = false;
  char grouping = 0;  // , or _
  int64_t width = 0;
  int64_t precision = -1;  // -1: not given
  char type = 0;
};

inline constexpr int64_t kMaxPrecision = 1000;

// Digits of |number| in base 2, 8, 10 or 16 for type b, o, d, x or X; `alternate` adds a prefix such as 0b.
std::string integer_digits(int64_t number, char type, bool alternate);
// |number| formatted by type e E f F g G %, or as repr() does without a type.
std::string float_digits(double number, char type, int64_t precision, bool alternate);
// Inserts a separator into the integer part after every `every` digits.
std::string with_grouping(const std::string& digits, char separator, size_t every);

// Pads `sign` and `body` (digits with their prefix, or text) to the width. `fallback`: the alignment if none is given.
void append_padded(std::string_view sign, std::string_view body, const Layout& layout, char fallback, Text& out);

}  // namespace infer::jinja
