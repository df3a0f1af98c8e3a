#include "ggml-like/bytes_text.h"

#include <doctest/doctest.h>

using infer::bytes_text;

TEST_CASE("sizes are printed in the largest unit that is not above them") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1024) == "1.00 KiB");
  CHECK(bytes_text(943718) == "921.60 KiB");
  CHECK(bytes_text(5894963) == "5.62 MiB");
  CHECK(bytes_text(uint64_t{3} << 30) == "3.00 GiB");
  CHECK(bytes_text(UINT64_MAX) == "16777216.00 TiB");
}

TEST_CASE("digits are grouped by three") {
  CHECK(infer::grouped(0) == "0");
  CHECK(infer::grouped(999) == "999");
  CHECK(infer::grouped(1000) == "1,000");
  CHECK(infer::grouped(28935) == "28,935");
  CHECK(infer::grouped(42949672960) == "42,949,672,960");
}
