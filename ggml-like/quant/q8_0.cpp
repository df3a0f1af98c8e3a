// Q8_0: 8 bits and a scale per 32.
#include <algorithm>
#include <cmath>

#include "ggml-like/quant/fit.h"
#include "ggml-like/quant/formats.h"
#include "ggml-like/quant/rounding.h"
#include "ggml-like/quant/scalar.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockQ8_0;
  static constexpr bool kHasMin = false;
  static void unpack(const Block& b, Unpacked32& u) { std::copy_n(b.qs, kBlock32, u.code); }
  static float scale(const Block& b) { return f16_to_f32(b.d); }
};

}  // namespace

void q8_0_to_float(const void* blocks, float* values, int64_t n) { dequantize32<Format>(blocks, values, n); }

void q8_0_from_float(const float* values, void* blocks, int64_t n) {
  auto* block = static_cast<BlockQ8_0*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock32, ++block) {
    const float* x = values + start;
    *block = {};
    if (!all_finite(x, kBlock32)) {
      block->d = kF16NaN;
      continue;
    }
    float largest = 0;
    for (int i = 0; i < kBlock32; ++i) largest = std::max(largest, std::abs(x[i]));
    block->d = scale_to_f16(largest / 127.0);
    const double d = f16_to_f32(block->d);
    if (d == 0) continue;
    for (int i = 0; i < kBlock32; ++i) {
      block->qs[i] = static_cast<int8_t>(round_even(std::clamp(x[i] / d, -127.0, 127.0)));
    }
  }
}

float q8_0_dot(const void* blocks, const void* activations, int64_t n) { return dot32<Format>(blocks, activations, n); }

}  // namespace infer
