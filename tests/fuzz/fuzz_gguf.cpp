// Fuzz target for the GGUF reader: reads any bytes, then uses everything that the file object offers.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/walk_gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  infer::test::walk_gguf(std::as_bytes(std::span<const uint8_t>(data, size)));
  return 0;
}
