// Limits of GGUF files, of the reader and of the writer. Internal to both.
#pragma once

#include <cstdint>

namespace infer {

constexpr uint64_t kMaxGgufKeyBytes = 65535;  // the format's own limit
constexpr uint64_t kMinGgufAlignment = 8, kMaxGgufAlignment = 1 << 20;

}  // namespace infer
