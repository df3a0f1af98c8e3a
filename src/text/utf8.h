// Decodes and encodes UTF-8 in untrusted bytes. Ill-formed input is split into maximal subparts, as the Unicode
// standard recommends (section 3.9); each would be replaced by one U+FFFD. Free functions, no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace infer {

inline constexpr uint32_t kReplacementCharacter = 0xFFFD;
inline constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";

struct Utf8Char {
  uint32_t code;    // kReplacementCharacter if ill-formed
  uint32_t length;  // bytes, at least 1
  bool valid;
  bool cut_off;  // ill-formed only because the text ends here
};

// REQUIRES: at < text.size().
Utf8Char decode_utf8(std::string_view text, size_t at);

// `code` must be a Unicode scalar value; anything else is written as U+FFFD.
void append_utf8(uint32_t code, std::string& out);

bool is_valid_utf8(std::string_view text);

}  // namespace infer
