// Sizes and counts as people read them. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace infer {

// In the largest unit of which there is at least one: "0 B", "512 B", "5.62 MiB", "3.00 GiB".
std::string bytes_text(uint64_t bytes);

// Digits in groups of three: "7", "28,935".
std::string grouped(uint64_t n);

}  // namespace infer
