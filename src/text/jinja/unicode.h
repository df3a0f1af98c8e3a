// Character properties and case mapping as in Python's str, and indexing by code point.
#pragma once

#include "src/text/jinja/value.h"

namespace infer::jinja {

bool is_printable(uint32_t code);
bool is_space(uint32_t code);
bool is_alphabetic(uint32_t code);
bool is_decimal(uint32_t code);
bool is_digit(uint32_t code);
bool is_numeric(uint32_t code);
bool is_upper(uint32_t code);
bool is_lower(uint32_t code);
bool is_title(uint32_t code);
inline bool is_alphanumeric(uint32_t code) { return is_alphabetic(code) || is_numeric(code); }
bool is_identifier_start(uint32_t code);
bool is_identifier_part(uint32_t code);

enum class Case { kUpper, kLower, kTitle, kFold };
// Includes the mappings from one character to several, and the final sigma.
Text to_case(Heap& heap, std::string_view text, Case how);
Text to_title(Heap& heap, std::string_view text);        // str.title()
Text to_capitalized(Heap& heap, std::string_view text);  // str.capitalize()
Text swap_case(Heap& heap, std::string_view text);

// Removes the characters of `set` (default: white space) at the chosen ends.
enum class Side { kLeft, kRight, kBoth };
std::string_view strip(std::string_view text, Side side);
std::string_view strip(std::string_view text, std::string_view set, Side side);

// Byte offset of the code point at `index` (the end if there are fewer). Linear time unless the text is ASCII.
size_t byte_offset(const StringObject& text, int64_t index);
// The number of code points before a byte offset.
int64_t code_points_before(const StringObject& text, size_t offset);
int64_t code_points(std::string_view text);

// Replaces invalid UTF-8 by U+FFFD.
std::string valid_text(std::string_view text);

// Lines as str.splitlines() splits them.
template <typename Each>
void each_line(std::string_view text, Each each);  // each(line, line including its end)

// Calls each(code, bytes) for every character.
template <typename Each>
void each_character(std::string_view text, Each each);

// The line that begins at `at`, which is moved past it; nullopt at the end.
struct Line {
  std::string_view text, with_end;
};
std::optional<Line> next_line(std::string_view text, size_t& at);

template <typename Each>
void each_line(std::string_view text, Each each) {
  size_t at = 0;
  while (const auto line = next_line(text, at)) each(line->text, line->with_end);
}

uint32_t code_at(std::string_view text, size_t at, size_t& length);

template <typename Each>
void each_character(std::string_view text, Each each) {
  for (size_t at = 0, length = 0; at < text.size(); at += length) {
    const uint32_t code = code_at(text, at, length);
    each(code, text.substr(at, length));
  }
}

}  // namespace infer::jinja
