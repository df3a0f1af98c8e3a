// Formats sizes, counts and identifiers. Pure; any thread.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>

namespace infer {

// Uses the largest unit with a value of at least one: "0 B", "512 B", "5.62 MiB", "3.00 GiB".
std::string bytes_text(uint64_t bytes);

// Two digits for each byte: "00ff".
std::string hex_text(const void* bytes, size_t n);

// Millions of bytes: "12.3 MB".
std::string megabytes(uint64_t bytes);

// Groups digits in threes: "7", "28,935".
std::string grouped(uint64_t n);
std::string grouped(std::signed_integral auto n) {
  std::string text(n < 0 ? "-" : "");
  return text += grouped(n < 0 ? -static_cast<uint64_t>(n) : static_cast<uint64_t>(n));
}

}  // namespace infer
