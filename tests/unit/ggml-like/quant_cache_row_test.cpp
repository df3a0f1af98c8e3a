#include "ggml-like/quant/cache_row.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "ggml-like/half.h"

using namespace infer;

namespace {

std::vector<float> stored(DataType type, const std::vector<float>& x) {
  std::vector<std::byte> bytes(row_bytes(type, static_cast<int64_t>(x.size())));
  std::vector<float> back(x.size());
  store_cache_row(type, x.data(), bytes.data(), static_cast<int64_t>(x.size()));
  traits(type).to_float(bytes.data(), back.data(), static_cast<int64_t>(x.size()));
  return back;
}

}  // namespace

TEST_CASE("cached values are off by at most half a step, and each 32 are quantized separately") {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const DataType type : {DataType::kQ8_0, DataType::kQ4_0}) {
    CAPTURE(traits(type).name);
    std::vector<float> x(32 * 200);
    for (size_t i = 0; i < x.size(); ++i) x[i] = normal(random) * std::exp2(static_cast<float>(i / 32 % 20) - 10.0f);
    const std::vector<float> back = stored(type, x);
    for (size_t start = 0; start < x.size(); start += 32) {
      float largest = 0;
      for (size_t i = start; i < start + 32; ++i) largest = std::max(largest, std::abs(x[i]));
      // Q4_0 has no code 8: values of the opposite sign may be off by a whole step. F16 rounds the scale.
      const float step = type == DataType::kQ8_0 ? largest / 127 : largest / 8;
      const float bound = (type == DataType::kQ8_0 ? 0.5f : 1.0f) * step * 1.002f + largest * 0x1p-10f;
      for (size_t i = start; i < start + 32; ++i) CHECK(std::abs(back[i] - x[i]) <= bound);
      const std::vector<float> alone(x.begin() + start, x.begin() + start + 32);
      CHECK(std::memcmp(stored(type, alone).data(), back.data() + start, 32 * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("extremes are cached as finite numbers, zeros as zeros") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const DataType type : {DataType::kQ8_0, DataType::kQ4_0}) {
    for (const float value : {0.0f, -0.0f, 1e-45f, 1e-30f, 1e-8f, 3e38f, -3e38f, nan, infinity, -infinity}) {
      CAPTURE(value);
      std::vector<float> x(32, 0.25f);
      for (size_t i = 0; i < 32; i += 3) x[i] = value;
      for (const float y : stored(type, x)) CHECK(std::isfinite(y));
      for (const float y : stored(type, std::vector<float>(32, value))) CHECK(std::isfinite(y));
    }
    for (const float y : stored(type, std::vector<float>(64, 0.0f))) CHECK(y == 0);
  }
  const std::vector<float> x = {1.5f, -2.25f};
  CHECK(stored(DataType::kF16, x) == x);
  CHECK(stored(DataType::kF32, x) == x);
}
