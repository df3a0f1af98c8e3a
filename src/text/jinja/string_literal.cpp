#include "src/text/jinja/string_literal.h"

#include "src/text/utf8.h"

namespace infer::jinja {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Reads `digits` hexadecimal digits at `at`; -1 if there are not enough.
int64_t hex(std::string_view text, size_t at, size_t digits) {
  if (at + digits > text.size()) return -1;
  int64_t value = 0;
  for (size_t i = at; i < at + digits; ++i) {
    const int digit = hex_value(text[i]);
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

}  // namespace

std::string unescape(std::string_view literal, std::string& problem) {
  std::string out;
  out.reserve(literal.size());
  for (size_t i = 0; i < literal.size();) {
    if (literal[i] != '\\' || i + 1 >= literal.size()) {
      out += literal[i++];
      continue;
    }
    const char c = literal[i + 1];
    i += 2;
    constexpr std::string_view kLetters = "abfnrtv\\'\"", kMeanings = "\a\b\f\n\r\t\v\\'\"";
    if (const size_t letter = kLetters.find(c); letter != std::string_view::npos) {
      out += kMeanings[letter];
    } else if (c == '\n') {
      // An escaped line break produces no text.
    } else if (c >= '0' && c <= '7') {
      uint32_t code = static_cast<uint32_t>(c - '0');
      for (int k = 0; k < 2 && i < literal.size() && literal[i] >= '0' && literal[i] <= '7'; ++k) {
        code = code * 8 + static_cast<uint32_t>(literal[i++] - '0');
      }
      append_utf8(code, out);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      int64_t code = hex(literal, i, digits);
      if (code < 0 || code > 0x10FFFF) {
        problem = code < 0 ? std::string("truncated \\") + c + " escape" : "illegal Unicode character";
        return out;
      }
      i += digits;
      // The two halves of a surrogate pair make one character.
      if (code >= 0xD800 && code < 0xDC00 && literal.substr(i).starts_with("\\u")) {
        const int64_t low = hex(literal, i + 2, 4);
        if (low >= 0xDC00 && low < 0xE000) {
          code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
          i += 6;
        }
      }
      append_utf8(static_cast<uint32_t>(code), out);
    } else if (c == 'N') {
      problem = "characters by name (\\N) are not available";
      return out;
    } else {
      out += '\\';
      out += c;
    }
  }
  return out;
}

}  // namespace infer::jinja
