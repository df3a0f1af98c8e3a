#include "ggml-like/bytes_text.h"

#include <cstdio>

namespace infer {

std::string bytes_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (unit < 4 && bytes >> (10 * (unit + 1)) != 0) ++unit;
  char text[64];
  const double value = static_cast<double>(bytes) / static_cast<double>(uint64_t{1} << (10 * unit));
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.2f %s", value, kUnits[unit]);
  return text;
}

std::string megabytes(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

std::string grouped(uint64_t n) {
  std::string digits = std::to_string(n);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string hex_text(const void* bytes, size_t n) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const auto* byte = static_cast<const unsigned char*>(bytes); n > 0; ++byte, --n) {
    text += kDigits[*byte >> 4];
    text += kDigits[*byte & 15];
  }
  return text;
}

}  // namespace infer
