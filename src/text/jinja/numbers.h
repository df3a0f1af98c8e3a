// Parses and rounds numbers as Python does.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace infer::jinja {

// int(text, base) and float(text); nullopt where Python raises ValueError. Throws Failure for integers beyond 64 bits.
std::optional<int64_t> parse_int(std::string_view text, int base);
std::optional<double> parse_float(std::string_view text);

// round(number, digits): half to even, computed from the exact decimal value.
int64_t round_to(int64_t number, int64_t digits);
double round_to(double number, int64_t digits);

// A requested width, at least 0. Throws Failure (kBudget) if it exceeds the maximum for any output.
int64_t indent_width(int64_t width);

}  // namespace infer::jinja
