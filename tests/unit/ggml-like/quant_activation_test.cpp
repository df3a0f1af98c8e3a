#include "ggml-like/quant/activation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/support/quant_reference.h"

using namespace infer;

namespace {

// The definition, one value at a time.
void check_block(const float* x, const int8_t* q, float d, int n) {
  float a = 0;
  for (int i = 0; i < n; ++i) a = std::max(a, std::abs(x[i]));
  CHECK(d == a / 127.0f);
  const float inverse = 127.0f / a;
  int wrong = 0;
  for (int i = 0; i < n; ++i) wrong += q[i] != (std::isfinite(inverse) ? std::nearbyint(x[i] * inverse) : 0);
  CHECK(wrong == 0);
}

void check_row(const float* x) {
  Activation256 big;
  quantize_activations(x, &big, 1);
  check_block(x, big.q, big.d, 256);
  int peak = 0;
  for (int s = 0; s < 16; ++s) {
    int sum = 0, magnitudes = 0;
    for (int i = 0; i < 16; ++i) sum += big.q[16 * s + i], magnitudes += std::abs(big.q[16 * s + i]);
    CHECK(big.sum16[s] == sum);
    peak = std::max(peak, magnitudes);
  }
  CHECK(big.peak16 == peak);
  for (int s = 0; s < 8; ++s) CHECK(big.sum32[s] == big.sum16[2 * s] + big.sum16[2 * s + 1]);

  Activation32 small[8];
  quantize_activations(x, small, 8);
  for (int k = 0; k < 8; ++k) {
    check_block(x + 32 * k, small[k].q, small[k].d, 32);
    int sum[2] = {};
    for (int i = 0; i < 32; ++i) sum[i / 16] += small[k].q[i];
    CHECK(small[k].sum16[0] == sum[0]);
    CHECK(small[k].sum16[1] == sum[1]);
    CHECK(small[k].sum32 == sum[0] + sum[1]);
  }
}

}  // namespace

TEST_CASE("activations follow the definition at every magnitude") {
  test::Random random(2);
  for (int exponent = -148; exponent <= 124; exponent += 2) {
    CAPTURE(exponent);
    std::vector<float> x = random.normals(256);
    for (float& v : x) v = std::ldexp(v, exponent);
    check_row(x.data());
  }
}

TEST_CASE("activations: zero, extremes, denormals") {
  std::vector<float> x(256, 0.0f);
  check_row(x.data());
  x[3] = -0.0f;
  check_row(x.data());
  std::fill(x.begin(), x.end(), std::numeric_limits<float>::max());
  check_row(x.data());
  for (size_t i = 0; i < x.size(); i += 2) x[i] = -x[i];
  check_row(x.data());
  std::fill(x.begin(), x.end(), std::numeric_limits<float>::denorm_min());
  check_row(x.data());
  // Both sides of the magnitude at which 127 / a overflows.
  for (float a : {0x1.fbfffep-122f, 0x1.fcp-122f, 0x1.fc0002p-122f, 0x1p-121f}) {
    std::fill(x.begin(), x.end(), a);
    check_row(x.data());
  }
}

TEST_CASE("activations round ties to even") {
  std::vector<float> x(256, 0.0f);
  x[0] = 127;  // scale 1
  const float values[] = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 126.5f};
  const int expected[] = {0, 2, 2, 0, -2, -2, 126};
  for (int i = 0; i < 7; ++i) x[1 + i] = values[i];
  Activation256 block;
  quantize_activations(x.data(), &block, 1);
  CHECK(block.q[0] == 127);
  for (int i = 0; i < 7; ++i) CHECK(block.q[1 + i] == expected[i]);
}

TEST_CASE("activations: a NaN or infinity affects only its block") {
  test::Random random(3);
  const std::vector<float> good = random.normals(512);
  for (float bad : {NAN, -NAN, INFINITY, -INFINITY}) {
    for (int at : {0, 1, 17, 100, 255}) {
      std::vector<float> x = good;
      x[at] = bad;
      Activation256 block[2];
      quantize_activations(x.data(), block, 2);
      CHECK(std::isnan(block[0].d));
      CHECK(!std::signbit(block[0].d));
      CHECK(std::all_of(block[0].q, block[0].q + 256, [](int8_t q) { return q == 0; }));
      CHECK(std::all_of(block[0].sum32, block[0].sum32 + 8, [](int16_t s) { return s == 0; }));
      check_block(x.data() + 256, block[1].q, block[1].d, 256);
      Activation32 small[16];
      quantize_activations(x.data(), small, 16);
      for (int k = 0; k < 16; ++k) {
        CHECK(std::isnan(small[k].d) == (k == at / 32));
        if (k != at / 32) check_block(x.data() + 32 * k, small[k].q, small[k].d, 32);
      }
    }
  }
}
