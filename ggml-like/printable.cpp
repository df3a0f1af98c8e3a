#include "ggml-like/printable.h"

#include <cstdint>
#include <cstdio>

namespace infer {
namespace {

// Characters that move the cursor, end a line or reorder the following text.
bool is_unsafe(char32_t c) {
  if (c < 0x20 || (c >= 0x7F && c <= 0x9F)) return true;
  return c == 0x061C || (c >= 0x200E && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

void append_escape(std::string& out, const char* format, unsigned value) {
  char buffer[16];
  std::snprintf(buffer, sizeof(buffer), format, value);
  out += buffer;
}

std::string escaped(std::string_view text, size_t max_bytes, std::string_view backslash) {
  std::string out;
  size_t pos = 0;
  while (pos < text.size()) {
    char32_t c = 0;
    const size_t length = utf8_character(text.substr(pos), c);
    if (pos + (length == 0 ? 1 : length) > max_bytes) return out + "...";
    if (length == 0) {
      append_escape(out, "\\x%02X", static_cast<uint8_t>(text[pos++]));
      continue;
    }
    if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else if (c == '\r') out += "\\r";
    else if (c == '\\') out += backslash;
    else if (is_unsafe(c)) append_escape(out, c < 0x80 ? "\\x%02X" : "\\u{%04X}", static_cast<unsigned>(c));
    else out += text.substr(pos, length);
    pos += length;
  }
  return out;
}

}  // namespace

size_t utf8_character(std::string_view text, char32_t& code_point) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) {
    code_point = first;
    return 1;
  }
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  char32_t c = first & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    c = (c << 6) | (byte(i) & 0x3F);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};  // by length; smaller values are overlong forms
  if (c < kSmallest[length] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) return 0;
  code_point = c;
  return length;
}

std::string printable(std::string_view text, size_t max_bytes) { return escaped(text, max_bytes, "\\\\"); }

std::string printable_path(const std::filesystem::path& path) { return printable(path.string(), 4096); }

std::string printable_message(std::string_view text, size_t max_bytes) { return escaped(text, max_bytes, "\\"); }

}  // namespace infer
