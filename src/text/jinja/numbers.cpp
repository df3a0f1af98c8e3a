#include "src/text/jinja/numbers.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "src/text/jinja/operators.h"
#include "src/text/jinja/unicode.h"

namespace infer::jinja {
namespace {

// Removes single underscores between digits; nullopt if an underscore is anywhere else.
std::optional<std::string> without_underscores(std::string_view text, bool hex) {
  std::string out;
  const auto digit = [&](size_t i) {
    const char c = i < text.size() ? text[i] : ' ';
    const char lower = static_cast<char>(c | 0x20);
    return (c >= '0' && c <= '9') || (hex && lower >= 'a' && lower <= 'z');
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') out += text[i];
    else if (i == 0 || !digit(i - 1) || !digit(i + 1)) return std::nullopt;
  }
  return out;
}

}  // namespace

std::optional<int64_t> parse_int(std::string_view text, int base) {
  text = strip(text, Side::kBoth);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || text.size() > 4000 || base < 0 || base == 1 || base > 36) return std::nullopt;
  const char letter = text.size() > 2 && text[0] == '0' ? static_cast<char>(text[1] | 0x20) : ' ';
  const int prefix = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  if (prefix != 0 && (base == 0 || base == prefix)) {
    base = prefix;
    text.remove_prefix(2);
    if (text.starts_with('_')) text.remove_prefix(1);
  } else if (base == 0) {
    base = 10;
    if (text.size() > 1 && text[0] == '0' && text.find_first_not_of("0_") != std::string_view::npos)
      return std::nullopt;
  }
  const auto digits = without_underscores(text, base > 10);
  if (!digits || digits->empty() || digits->front() == '-' || digits->front() == '+') return std::nullopt;
  uint64_t magnitude = 0;
  const auto [end, error] = std::from_chars(digits->data(), digits->data() + digits->size(), magnitude, base);
  if (end != digits->data() + digits->size()) return std::nullopt;
  if (error == std::errc::invalid_argument) return std::nullopt;
  if (error != std::errc() || magnitude > static_cast<uint64_t>(INT64_MAX) + (negative ? 1 : 0)) {
    fail("the number does not fit in 64 bits");
  }
  return negative ? static_cast<int64_t>(0 - magnitude) : static_cast<int64_t>(magnitude);
}

std::optional<double> parse_float(std::string_view text) {
  text = strip(text, Side::kBoth);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const auto digits = without_underscores(text, false);
  if (!digits || digits->empty()) return std::nullopt;
  std::string lower = *digits;
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  double number = 0;
  if (lower == "inf" || lower == "infinity") {
    number = INFINITY;
  } else if (lower == "nan") {
    number = NAN;
  } else {
    if (lower.find_first_not_of("0123456789.e+-") != std::string::npos || lower[0] == '+' || lower[0] == '-') {
      return std::nullopt;
    }
    char* end = nullptr;
    number = std::strtod(lower.c_str(), &end);
    if (end != lower.c_str() + lower.size()) return std::nullopt;
  }
  return negative ? -number : number;
}

int64_t round_to(int64_t number, int64_t digits) {
  if (digits >= 0) return number;
  if (digits < -18) return 0;
  int64_t unit = 1;
  for (int64_t i = digits; i < 0; ++i) unit *= 10;
  int64_t rest = number % unit, down = number - rest;
  if (rest < 0) rest += unit, down -= unit;
  const bool up = rest > unit - rest || (rest == unit - rest && down / unit % 2 != 0);
  return up ? add_checked(down, unit) : down;
}

double round_to(double number, int64_t digits) {
  if (!std::isfinite(number) || number == 0 || digits > 330) return number;
  if (digits < -310) return std::copysign(0.0, number);
  // printf rounds the exact value, half to even.
  char text[800];
  if (digits >= 0) {
    std::snprintf(text, sizeof(text), "%.*f", static_cast<int>(digits), number);
    return std::strtod(text, nullptr);
  }
  const int exponent = static_cast<int>(std::floor(std::log10(std::fabs(number))));
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  if (exponent + 1 + digits <= 0) {
    const double half = unit / 2;
    return std::fabs(number) > half ? std::copysign(unit, number) : std::copysign(0.0, number);
  }
  std::snprintf(text, sizeof(text), "%.*e", static_cast<int>(exponent + digits), number);
  return std::strtod(text, nullptr);
}

int64_t indent_width(int64_t width) {
  constexpr int64_t kMost = int64_t{1} << 24;
  if (width > kMost) fail_budget(concat("the width ", width, " is too large"));
  return width < 0 ? 0 : width;
}

}  // namespace infer::jinja
