#include "ggml-like/quant/cache_row.h"

#include <doctest/doctest.h>

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "ggml-like/half.h"
#include "ggml-like/quant/tables.h"
#include "tests/support/quant_reference.h"

using namespace infer;

namespace {

std::vector<float> stored(DataType type, const std::vector<float>& x) {
  std::vector<std::byte> bytes(row_bytes(type, static_cast<int64_t>(x.size())));
  std::vector<float> back(x.size());
  store_cache_row(type, x.data(), bytes.data(), static_cast<int64_t>(x.size()));
  traits(type).to_float(bytes.data(), back.data(), static_cast<int64_t>(x.size()));
  return back;
}

// The quantized types, with the largest error of a value: in steps of `range`, the span of codes from 0 to the largest
// magnitude, or from the smallest value to the largest.
struct Quantized {
  DataType type;
  float steps;  // to the largest magnitude, or of the whole span
  bool has_minimum;
  float bound;  // in steps
};
// Q4_0 and Q5_0 have no code 8 or 16: values of the opposite sign may be off by a whole step. IQ4_NL's values are up to
// 23 steps apart; on the other side, 113 stands for up to 127.
constexpr Quantized kQuantized[] = {{DataType::kQ8_0, 127, false, 0.5f}, {DataType::kQ4_0, 8, false, 1},
                                    {DataType::kQ4_1, 15, true, 0.5f},   {DataType::kQ5_0, 16, false, 1},
                                    {DataType::kQ5_1, 31, true, 0.5f},   {DataType::kIQ4_NL, 127, false, 20}};

// ggml's quantize_row_{q4_1,q5_0,q5_1,iq4_nl}_ref for one block of 32, in their words.
struct GgmlBlock {
  float d, m = 0;
  int code[32];
};
GgmlBlock ggml_with_minimum(const float* x, int most) {
  float low = FLT_MAX, high = -FLT_MAX;
  for (int j = 0; j < 32; ++j) {
    if (x[j] < low) low = x[j];
    if (x[j] > high) high = x[j];
  }
  GgmlBlock b;
  const float d = (high - low) / static_cast<float>(most), id = d != 0 ? 1.0f / d : 0.0f;
  b.d = f16_to_f32(f32_to_f16(d));
  b.m = f16_to_f32(f32_to_f16(low));
  for (int j = 0; j < 32; ++j) {
    const float x0 = (x[j] - low) * id;
    b.code[j] = std::min<int>(most, static_cast<int8_t>(x0 + 0.5f));
  }
  return b;
}
GgmlBlock ggml_q5_0(const float* x) {
  float amax = 0, max = 0;
  for (int j = 0; j < 32; ++j) {
    if (amax < std::fabs(x[j])) amax = std::fabs(x[j]), max = x[j];
  }
  GgmlBlock b;
  const float d = max / -16, id = d != 0 ? 1.0f / d : 0.0f;
  b.d = f16_to_f32(f32_to_f16(d));
  for (int j = 0; j < 32; ++j) {
    const float x0 = x[j] * id;
    b.code[j] = std::min<int>(31, static_cast<int8_t>(x0 + 16.5f)) - 16;
  }
  return b;
}
int ggml_best_index(float x) {
  const int8_t* val = kIQ4NLValues;
  if (x <= val[0]) return 0;
  if (x >= val[15]) return 15;
  int ml = 0, mu = 15;
  while (mu - ml > 1) {
    const int mav = (ml + mu) / 2;
    if (x < val[mav]) mu = mav;
    else ml = mav;
  }
  return x - val[mu - 1] < val[mu] - x ? mu - 1 : mu;
}
GgmlBlock ggml_iq4_nl(const float* x) {
  float amax = 0, max = 0;
  for (int j = 0; j < 32; ++j) {
    if (std::fabs(x[j]) > amax) amax = std::fabs(x[j]), max = x[j];
  }
  GgmlBlock b = {0, 0, {}};
  if (amax < 1e-15f) return b;
  float d = max / kIQ4NLValues[0];
  const float id = 1 / d;
  float sumqx = 0, sumq2 = 0;
  for (int j = 0; j < 32; ++j) {
    const float q = kIQ4NLValues[ggml_best_index(id * x[j])], w = x[j] * x[j];
    b.code[j] = static_cast<int>(q);
    sumqx += w * q * x[j];
    sumq2 += w * q * q;
  }
  d = sumqx / sumq2;
  b.d = f16_to_f32(f32_to_f16(d));
  return b;
}
GgmlBlock ggml_block(DataType type, const float* x) {
  if (type == DataType::kQ5_0) return ggml_q5_0(x);
  if (type == DataType::kIQ4_NL) return ggml_iq4_nl(x);
  return ggml_with_minimum(x, type == DataType::kQ4_1 ? 15 : 31);
}

}  // namespace

TEST_CASE("cached values are off by at most half a step, and each 32 are quantized separately") {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const auto& [type, steps, has_minimum, steps_off] : kQuantized) {
    CAPTURE(traits(type).name);
    std::vector<float> x(32 * 200);
    for (size_t i = 0; i < x.size(); ++i) x[i] = normal(random) * std::exp2(static_cast<float>(i / 32 % 20) - 10.0f);
    const std::vector<float> back = stored(type, x);
    for (size_t start = 0; start < x.size(); start += 32) {
      float largest = 0, low = x[start], high = x[start];
      for (size_t i = start; i < start + 32; ++i) {
        largest = std::max(largest, std::abs(x[i]));
        low = std::min(low, x[i]), high = std::max(high, x[i]);
      }
      // F16 rounds the scale and the minimum.
      const float step = (has_minimum ? high - low : largest) / steps;
      const float bound = steps_off * step * 1.002f + largest * 0x1p-9f;
      for (size_t i = start; i < start + 32; ++i) CHECK(std::abs(back[i] - x[i]) <= bound);
      const std::vector<float> alone(x.begin() + start, x.begin() + start + 32);
      CHECK(std::memcmp(stored(type, alone).data(), back.data() + start, 32 * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("extremes are cached as finite numbers, zeros as zeros") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const Quantized& quantized : kQuantized) {
    const DataType type = quantized.type;
    CAPTURE(traits(type).name);
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

TEST_CASE("Q4_1, Q5_0, Q5_1 and IQ4_NL have the scales and codes that ggml gives them in a cache") {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (const DataType type : {DataType::kQ4_1, DataType::kQ5_0, DataType::kQ5_1, DataType::kIQ4_NL}) {
    CAPTURE(traits(type).name);
    const test::QuantRecord* record = nullptr;
    for (const auto& r : test::kQuantRecords) {
      if (r.name == traits(type).name) record = &r;
    }
    REQUIRE(record);
    for (int i = 0; i < 500; ++i) {
      float x[32];
      for (float& v : x) v = normal(random) * std::exp2(static_cast<float>(i % 20) - 10.0f) + static_cast<float>(i % 3);
      if (i % 7 == 0) std::fill_n(x + 5, 20, x[4]);
      std::vector<uint8_t> bytes(row_bytes(type, 32));
      store_cache_row(type, x, bytes.data(), 32);
      const test::Fields found = record->take_apart(test::BlockBits{bytes.data()});
      const GgmlBlock expected = ggml_block(type, x);
      CHECK(found.d == expected.d);
      CHECK(found.m == expected.m);
      for (int j = 0; j < 32; ++j) CHECK(found.code[j] == expected.code[j]);
      float back[32];
      traits(type).to_float(bytes.data(), back, 32);
      for (int j = 0; j < 32; ++j) {
        CHECK(back[j] == expected.d * static_cast<float>(expected.code[j]) + expected.m);
      }
    }
  }
}
