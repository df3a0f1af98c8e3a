// Tables of characters, each sorted by code point.
#pragma once

#include <cstdint>
#include <span>

namespace infer::jinja {

struct CodeRange {
  uint32_t first, last;
};

// A character whose upper or title case is several characters; unused places are 0.
struct SpecialCase {
  uint32_t code;
  uint32_t upper[3];
  uint32_t title[3];
};

std::span<const CodeRange> other_digits();     // str.isdigit(), but not decimal
std::span<const CodeRange> numeric_letters();  // str.isnumeric(), but not of the number categories
std::span<const CodeRange> other_lowercase();  // besides the category Ll
std::span<const CodeRange> other_uppercase();  // besides the category Lu
std::span<const SpecialCase> special_cases();

}  // namespace infer::jinja
