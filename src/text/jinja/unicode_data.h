// Character tables, each sorted by code point.
#pragma once

#include <cstdint>
#include <span>

namespace infer::jinja {

struct CodeRange {
  uint32_t first, last;
};

// A character whose uppercase or title case is several characters; unused entries are 0.
struct SpecialCase {
  uint32_t code;
  uint32_t upper[3];
  uint32_t title[3];
};

std::span<const CodeRange> other_digits();     // str.isdigit() is true, isdecimal() is false
std::span<const CodeRange> numeric_letters();  // str.isnumeric() is true, though the category is not a number
std::span<const CodeRange> other_lowercase();  // lowercase outside category Ll
std::span<const CodeRange> other_uppercase();  // uppercase outside category Lu
std::span<const SpecialCase> special_cases();

}  // namespace infer::jinja
