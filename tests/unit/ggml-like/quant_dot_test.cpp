// The scalar dots against the formulas of quant/dot.h, evaluated here from blocks that are decoded bit by bit (results
// must be bit-identical), and against the exact dot product in double (within a bound derived from the number of
// roundings).
#include "ggml-like/quant/dot.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "ggml-like/data_type.h"
#include "ggml-like/half.h"
#include "ggml-like/quant/activation.h"
#include "tests/support/quant_reference.h"

using namespace infer;
using infer::test::block_buffer;

namespace {

bool same_bits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

// Room for a row in blocks of any format, aligned for all of them.
const void* block_at(const TypeTraits& t, const std::vector<uint64_t>& blocks, int64_t index) {
  return reinterpret_cast<const uint8_t*>(blocks.data()) + index * t.type_size;
}

struct Row {
  std::vector<Activation256> big;
  std::vector<Activation32> small;
  const void* data() const { return big.empty() ? static_cast<const void*>(small.data()) : big.data(); }
  int q(int64_t i) const { return big.empty() ? small[i / 32].q[i % 32] : big[i / 256].q[i % 256]; }
  float d(int64_t i) const { return big.empty() ? small[i / 32].d : big[i / 256].d; }
  int64_t block() const { return big.empty() ? 32 : 256; }
};

Row quantize(const TypeTraits& t, const std::vector<float>& x) {
  Row row;
  const int64_t n = static_cast<int64_t>(x.size());
  if (t.activation == ActivationFormat::kInt8Per256) {
    row.big.resize(n / 256);
    quantize_activations(x.data(), row.big.data(), n / 256);
  } else {
    row.small.resize(n / 32);
    quantize_activations(x.data(), row.small.data(), n / 32);
  }
  return row;
}

struct Expected {
  float formula = 0;
  double exact = 0;
  double magnitude = 0;  // sum of the absolute values of all terms
};

// The integer sums of the values [begin, end) of a weight block, whose activations are `at` further on.
struct IntegerSums {
  int64_t sum = 0, min = 0;
  IntegerSums(const test::Fields& f, const Row& row, int64_t at, int begin, int end, bool scaled) {
    for (int k = begin; k < end; ++k) {
      const int q = row.q(at + k);
      sum += int64_t{scaled ? f.scale[k / f.sub] : 1} * f.code[k] * q;
      if (f.has_min) min += int64_t{scaled ? f.min[k / f.sub] : 1} * q;
    }
    REQUIRE(std::abs(sum) < int64_t{1} << 31);
    REQUIRE(std::abs(min) < int64_t{1} << 31);
  }
};

// What the values [begin, end) of a weight block contribute, before the scale of the activations.
float block_product(const test::Fields& f, const Row& row, int64_t at, int begin, int end) {
  const bool own_scale = f.n == 64 && f.sub == 16;  // not one of several that are added as integers
  const IntegerSums sums(f, row, at, begin, end, f.n != 32 && !own_scale);
  const float d = static_cast<float>(own_scale ? f.d * f.scale[begin / f.sub] : f.d), m = static_cast<float>(f.m);
  const float v = static_cast<float>(sums.sum) * d;
  if (!f.has_min) return v;
  return f.n == 256 ? std::fma(-static_cast<float>(sums.min), m, v) : std::fma(static_cast<float>(sums.min), m, v);
}

Expected expected_dot(const TypeTraits& t, const std::vector<uint64_t>& blocks, const Row& row, int64_t n) {
  Expected e;
  for (int64_t at = 0; at < n; at += t.block_size) {
    const test::Fields f = test::take_apart(t.name, block_at(t, blocks, at / t.block_size));
    const int step = std::min(f.n == 256 ? 256 : f.sub, static_cast<int>(row.block()));
    for (int begin = 0; begin < f.n; begin += step) {
      e.formula = std::fma(block_product(f, row, at, begin, begin + step), row.d(at + begin), e.formula);
    }
    for (int k = 0; k < f.n; ++k) {
      const double x = static_cast<double>(row.d(at + k)) * row.q(at + k);
      e.exact += f.value(k) * x;
      e.magnitude += (std::abs(f.scaled(k)) + std::abs(f.offset(k))) * std::abs(x);
    }
  }
  return e;
}

// Each term has at most 18 roundings in an activation block (conversion, product, 16 fused multiply-adds) and one per
// block of the row.
double tolerance(const Expected& e, int64_t n, int64_t block) {
  return 1.01 * static_cast<double>(18 + n / block) * 0x1p-24 * e.magnitude + 0x1p-149 * static_cast<double>(n);
}

std::vector<int64_t> row_lengths(const TypeTraits& t) {
  std::vector<int64_t> lengths = {0, 32, 64, 96, 224, 256, 288, 512, 2048, 2080, 4864};
  std::erase_if(lengths, [&](int64_t n) { return n % t.block_size != 0; });
  return lengths;
}

}  // namespace

TEST_CASE("dot of quantized weights: bit-identical to the formula, within the bound of the exact result") {
  test::Random random(4);
  for (const TypeTraits& t : all_types()) {
    if (!t.quantized || !t.dot) continue;
    for (int64_t n : row_lengths(t)) {
      CAPTURE(t.name);
      CAPTURE(n);
      const std::vector<float> w = random.normals(n);
      std::vector<float> x = random.normals(n);
      for (float& v : x) v += 0.5f;  // sums that are not near zero make the minima matter
      std::vector<uint64_t> blocks = block_buffer(t, n);
      t.from_float(w.data(), blocks.data(), n);
      const Row row = quantize(t, x);
      const Expected e = expected_dot(t, blocks, row, n);
      const float dot = t.dot(blocks.data(), row.data(), n);
      CHECK(same_bits(dot, e.formula));
      CHECK(std::abs(dot - e.exact) <= tolerance(e, n, row.block()));
    }
  }
}

TEST_CASE("dot of random legal bits: bit-identical to the formula, whatever the scales") {
  test::Random random(5);
  for (const TypeTraits& t : all_types()) {
    if (!t.quantized || !t.dot) continue;
    int finite = 0;
    for (int repeat = 0; repeat < 60; ++repeat) {
      CAPTURE(t.name);
      CAPTURE(repeat);
      const int64_t n = t.block_size == 32 && repeat % 2 == 1 ? 96 : 512;
      std::vector<uint64_t> blocks = block_buffer(t, n);
      for (uint64_t& b : blocks) b = random.next();
      if (repeat % 3 == 0) {  // large and full codes
        for (uint64_t& b : blocks) b |= random.next() | random.next();
      }
      const Row row = quantize(t, random.normals(n));
      const Expected e = expected_dot(t, blocks, row, n);
      const float dot = t.dot(blocks.data(), row.data(), n);
      CHECK(same_bits(dot, e.formula));
      if (std::isfinite(dot) && std::isfinite(e.exact)) {
        ++finite;
        CHECK(std::abs(dot - e.exact) <= tolerance(e, n, row.block()));
      }
    }
    CHECK(finite > 0);
  }
}

TEST_CASE("dot: the largest integers, and activations that are not finite") {
  for (const TypeTraits& t : all_types()) {
    if (!t.quantized || !t.dot) continue;
    CAPTURE(t.name);
    for (uint64_t fill : {~uint64_t{0}, uint64_t{0}, uint64_t{0x8080808080808080u}}) {
      std::vector<uint64_t> blocks = block_buffer(t, 256);
      for (uint64_t& b : blocks) b = fill;
      std::vector<float> x(256, 1.0f);
      for (int sign = 0; sign < 2; ++sign) {
        const Row row = quantize(t, x);
        CHECK(same_bits(t.dot(blocks.data(), row.data(), 256), expected_dot(t, blocks, row, 256).formula));
        for (float& v : x) v = -v;
      }
      x[200] = NAN;
      const Row row = quantize(t, x);
      CHECK(std::isnan(t.dot(blocks.data(), row.data(), 256)));
    }
  }
}

TEST_CASE("reduce16 adds in its tree") {
  test::Random random(7);
  int differs_from_sequential = 0;
  for (int repeat = 0; repeat < 100; ++repeat) {
    const std::vector<float> p = random.normals(16);
    const float r0 = ((p[0] + p[8]) + (p[4] + p[12])) + ((p[2] + p[10]) + (p[6] + p[14]));
    const float r1 = ((p[1] + p[9]) + (p[5] + p[13])) + ((p[3] + p[11]) + (p[7] + p[15]));
    CHECK(same_bits(reduce16(p.data()), r0 + r1));
    float sequential = 0;
    for (float v : p) sequential += v;
    differs_from_sequential += !same_bits(r0 + r1, sequential);
  }
  CHECK(differs_from_sequential > 0);
}

TEST_CASE("dot of float weights: 16 partial sums, any length") {
  test::Random random(6);
  for (const TypeTraits& t : all_types()) {
    if (t.activation != ActivationFormat::kF32) continue;
    for (int64_t n : {0, 1, 3, 15, 16, 17, 31, 64, 100, 1000, 4096}) {
      CAPTURE(t.name);
      CAPTURE(n);
      const std::vector<float> w = random.normals(n), x = random.normals(n);
      std::vector<uint64_t> blocks = block_buffer(t, n);
      t.from_float(w.data(), blocks.data(), n);
      float p[16] = {};
      double exact = 0, magnitude = 0;
      for (int64_t i = 0; i < n; ++i) {
        float wi = w[i];
        uint16_t raw = 0;
        if (t.type_size == 2) {
          std::memcpy(&raw, block_at(t, blocks, i), 2);
          wi = t.type == DataType::kF16 ? static_cast<float>(test::half_value(raw))
                                        : std::bit_cast<float>(uint32_t{raw} << 16);
        }
        p[i & 15] = std::fma(wi, x[i], p[i & 15]);
        exact += static_cast<double>(wi) * x[i];
        magnitude += std::abs(static_cast<double>(wi) * x[i]);
      }
      const float dot = t.dot(blocks.data(), x.data(), n);
      CHECK(same_bits(dot, reduce16(p)));
      CHECK(std::abs(dot - exact) <= 1.01 * static_cast<double>(n / 16 + 5) * 0x1p-24 * magnitude);
    }
  }
}
