#include <doctest/doctest.h>

#include "backends/cpu/kernel_table.h"

using namespace infer::cpu;

// A matmul is prepared for the largest number of tokens. With experts, or in a step that does not fill its bucket, it
// gets fewer and uses other kernels.
TEST_CASE("matmul: scratch memory for many tokens is enough for fewer") {
  for (const int64_t k : {32, 256, 2048, 2304, 16384}) {
    size_t before = 0;
    for (int64_t n = 1; n <= 600; ++n) {
      CAPTURE(k);
      CAPTURE(n);
      const size_t bytes = matmul_scratch_bytes(n, k);
      REQUIRE(bytes >= before);
      before = bytes;
    }
  }
}
