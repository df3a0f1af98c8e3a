#include "ggml-like/quant/cache_row.h"

#include <cmath>

#include "ggml-like/half.h"
#include "ggml-like/quant/blocks.h"
#include "ggml-like/quant/rounding.h"

namespace infer {
namespace {

constexpr float kLargestHalf = 65504;

// The stored scale, and the factor for the values.
struct Scale {
  uint16_t half;
  float inverse;  // 0 for a scale of 0

  explicit Scale(float d) : half(f32_to_f16(d > kLargestHalf ? kLargestHalf : d < -kLargestHalf ? -kLargestHalf : d)) {
    const float kept = f16_to_f32(half);
    inverse = kept != 0 ? 1 / kept : 0;
  }
};

// NaN becomes the lowest code.
int code(float x, float lowest, float highest) {
  x = x > lowest ? x : lowest;
  return round_even(x < highest ? x : highest);
}

void store_q8_0(const float* x, BlockQ8_0* block, int64_t n) {
  for (; n > 0; n -= kBlock32, x += kBlock32, ++block) {
    float largest = 0;
    for (int i = 0; i < kBlock32; ++i) largest = std::fabs(x[i]) > largest ? std::fabs(x[i]) : largest;
    const Scale scale(largest / 127);
    block->d = scale.half;
    for (int i = 0; i < kBlock32; ++i) block->qs[i] = static_cast<int8_t>(code(x[i] * scale.inverse, -127, 127));
  }
}

// The value with the largest magnitude gets the code -8.
void store_q4_0(const float* x, BlockQ4_0* block, int64_t n) {
  for (; n > 0; n -= kBlock32, x += kBlock32, ++block) {
    float largest = 0;
    for (int i = 0; i < kBlock32; ++i) largest = std::fabs(x[i]) > std::fabs(largest) ? x[i] : largest;
    const Scale scale(largest / -8);
    block->d = scale.half;
    for (int i = 0; i < 16; ++i) {
      const int low = 8 + code(x[i] * scale.inverse, -8, 7), high = 8 + code(x[i + 16] * scale.inverse, -8, 7);
      block->qs[i] = static_cast<uint8_t>(low | high << 4);
    }
  }
}

}  // namespace

void store_cache_row(DataType type, const float* x, void* to, int64_t n) {
  if (type == DataType::kQ8_0) return store_q8_0(x, static_cast<BlockQ8_0*>(to), n);
  if (type == DataType::kQ4_0) return store_q4_0(x, static_cast<BlockQ4_0*>(to), n);
  traits(type).from_float(x, to, n);
}

}  // namespace infer
