#include "src/text/jinja/number_format.h"

#include <cmath>
#include <cstdio>

#include "src/text/jinja/print.h"
#include "src/text/jinja/unicode.h"

namespace infer::jinja {

std::string integer_digits(int64_t number, char type, bool alternate) {
  uint64_t magnitude = number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
  const unsigned base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  const char* symbols = type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string digits;
  do {
    digits.insert(digits.begin(), symbols[magnitude % base]);
    magnitude /= base;
  } while (magnitude > 0);
  if (alternate && base != 10) digits.insert(0, {'0', type});
  return digits;
}

std::string float_digits(double number, char type, int64_t precision, bool alternate) {
  number = std::fabs(number);
  const bool upper = type == 'E' || type == 'F' || type == 'G';
  std::string text;
  if (std::isnan(number) || std::isinf(number)) {
    text = std::isnan(number) ? "nan" : "inf";
    if (upper) text = std::isnan(number) ? "NAN" : "INF";
    return type == '%' ? text + "%" : text;
  }
  if (type == 0 && precision < 0) return float_repr(number);
  if (precision > kMaxPrecision) fail_budget(concat("the precision ", precision, " is too large"));
  const int digits = precision < 0 ? 6 : static_cast<int>(precision);
  std::string format = alternate ? "%#.*" : "%.*";
  format += type == '%' || type == 'F' ? 'f' : type == 0 ? 'g' : type == 'n' ? 'g' : type;
  char buffer[2048];
  std::snprintf(buffer, sizeof(buffer), format.c_str(), type == 0 && digits == 0 ? 1 : digits,
                type == '%' ? number * 100 : number);
  text = buffer;
  // Without a type, at least one digit follows the point.
  if (type == 0 && text.find_first_of(".e") == std::string::npos) text += ".0";
  return type == '%' ? text + "%" : text;
}

std::string with_grouping(const std::string& digits, char separator, size_t every) {
  size_t whole = 0;
  while (whole < digits.size() && std::isxdigit(static_cast<unsigned char>(digits[whole]))) {
    if (every == 3 && (digits[whole] < '0' || digits[whole] > '9')) break;
    ++whole;
  }
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % every == 0) out += separator;
    out += digits[i];
  }
  return out + digits.substr(whole);
}

void append_padded(std::string_view sign, std::string_view body, const Layout& layout, char fallback, Text& out) {
  Heap& heap = out.get_allocator().heap();
  const int64_t length = static_cast<int64_t>(sign.size()) + code_points(body);
  const int64_t missing = std::max(int64_t{0}, layout.width - length);
  if (static_cast<uint64_t>(missing) > heap.limits().memory_bytes)
    fail_budget(concat("the width ", layout.width, " is too large"));
  const char align = layout.align ? layout.align : fallback;
  const int64_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  const auto pad = [&](int64_t n) {
    out.reserve(out.size() + static_cast<size_t>(n) * layout.fill.size());
    if (layout.fill.size() == 1) out.append(static_cast<size_t>(n), layout.fill[0]);
    else
      for (heap.scan(static_cast<size_t>(n)); n > 0; --n) out += std::string_view(layout.fill);
  };
  if (align == '=') out += sign;
  pad(left);
  if (align != '=') out += sign;
  out += body;
  pad(missing - left);
}

}  // namespace infer::jinja
