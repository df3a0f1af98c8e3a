#include "ggml-like/quant/activation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ggml-like/quant/rounding.h"

namespace infer {
namespace {

// Fills q[0..n); returns d.
float quantize(const float* x, int8_t* q, int n) {
  // The bits of magnitudes sort like the magnitudes, with infinity and NaNs at the top.
  uint32_t largest = 0;
  for (int i = 0; i < n; ++i) largest = std::max(largest, std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu);
  if (largest >= 0x7f800000u) {
    std::fill_n(q, n, int8_t{0});
    return std::numeric_limits<float>::quiet_NaN();
  }
  const float a = std::bit_cast<float>(largest);
  const float inverse = 127.0f / a;
  if (!std::isfinite(inverse)) {
    std::fill_n(q, n, int8_t{0});
  } else {
    for (int i = 0; i < n; ++i) q[i] = static_cast<int8_t>(round_even(x[i] * inverse));
  }
  return a / 127.0f;
}

int16_t sum(const int8_t* q, int n) {
  int total = 0;
  for (int i = 0; i < n; ++i) total += q[i];
  return static_cast<int16_t>(total);
}

}  // namespace

void quantize_activations(const float* x, Activation256* blocks, int64_t n_blocks) {
  for (int64_t k = 0; k < n_blocks; ++k, x += 256) {
    Activation256& block = blocks[k];
    block = {};
    block.d = quantize(x, block.q, 256);
    for (int s = 0; s < 16; ++s) {
      block.sum16[s] = sum(block.q + 16 * s, 16);
      int32_t magnitudes = 0;
      for (int i = 16 * s; i < 16 * s + 16; ++i) magnitudes += std::abs(static_cast<int>(block.q[i]));
      block.peak16 = std::max(block.peak16, magnitudes);
    }
    for (int s = 0; s < 8; ++s) block.sum32[s] = sum(block.q + 32 * s, 32);
  }
}

void quantize_activations(const float* x, Activation32* blocks, int64_t n_blocks) {
  for (int64_t k = 0; k < n_blocks; ++k, x += 32) {
    Activation32& block = blocks[k];
    block = {};
    block.d = quantize(x, block.q, 32);
    for (int s = 0; s < 2; ++s) block.sum16[s] = sum(block.q + 16 * s, 16);
    block.sum32 = sum(block.q, 32);
  }
}

}  // namespace infer
