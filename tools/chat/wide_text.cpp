#include "tools/chat/wide_text.h"

#include <algorithm>

#include "ggml-like/printable.h"

namespace infer {

static_assert(sizeof(wchar_t) == 4);

std::wstring to_wide(std::string_view text) {
  std::wstring wide;
  while (!text.empty()) {
    char32_t character = 0;
    const size_t n = utf8_character(text, character);
    wide += n == 0 ? L'\uFFFD' : static_cast<wchar_t>(character);
    text.remove_prefix(std::max<size_t>(n, 1));
  }
  return wide;
}

std::string to_utf8(std::wstring_view wide) {
  std::string text;
  for (const wchar_t w : wide) {
    const char32_t c = static_cast<char32_t>(w);
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else if (c < 0x800) {
      text += static_cast<char>(0xC0 | c >> 6);
      text += static_cast<char>(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
      text += static_cast<char>(0xE0 | c >> 12);
      text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
      text += static_cast<char>(0x80 | (c & 0x3F));
    } else {
      text += static_cast<char>(0xF0 | c >> 18);
      text += static_cast<char>(0x80 | (c >> 12 & 0x3F));
      text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
      text += static_cast<char>(0x80 | (c & 0x3F));
    }
  }
  return text;
}

}  // namespace infer
