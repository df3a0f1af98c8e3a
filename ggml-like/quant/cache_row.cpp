#include "ggml-like/quant/cache_row.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ggml-like/half.h"
#include "ggml-like/quant/blocks.h"
#include "ggml-like/quant/rounding.h"
#include "ggml-like/quant/scalar.h"
#include "ggml-like/quant/tables.h"

namespace infer {
namespace {

constexpr float kLargestHalf = 65504;

float clamp_to_half(float x) { return x > kLargestHalf ? kLargestHalf : x < -kLargestHalf ? -kLargestHalf : x; }

// The stored scale, and the factor for the values.
struct Scale {
  uint16_t half;
  float inverse;  // 0 for a scale of 0

  explicit Scale(float d) : half(f32_to_f16(clamp_to_half(d))) {
    const float kept = f16_to_f32(half);
    inverse = kept != 0 ? 1 / kept : 0;
  }
};

// NaN becomes the lowest code.
int code(float x, float lowest, float highest) {
  x = x > lowest ? x : lowest;
  return round_even(x < highest ? x : highest);
}

void store_q8_0(const float* x, void* to, int64_t n) {
  auto* block = static_cast<BlockQ8_0*>(to);
  for (; n > 0; n -= kBlock32, x += kBlock32, ++block) {
    float largest = 0;
    for (int i = 0; i < kBlock32; ++i) largest = std::fabs(x[i]) > largest ? std::fabs(x[i]) : largest;
    const Scale scale(largest / 127);
    block->d = scale.half;
    for (int i = 0; i < kBlock32; ++i) block->qs[i] = static_cast<int8_t>(code(x[i] * scale.inverse, -127, 127));
  }
}

// The first value with the largest magnitude; 0 if there are only zeros and NaN.
float leader_of(const float* x) {
  float largest = 0;
  for (int i = 0; i < kBlock32; ++i) largest = std::fabs(x[i]) > std::fabs(largest) ? x[i] : largest;
  return largest;
}

// The value with the largest magnitude gets the code -8.
void store_q4_0(const float* x, void* to, int64_t n) {
  auto* block = static_cast<BlockQ4_0*>(to);
  for (; n > 0; n -= kBlock32, x += kBlock32, ++block) {
    const Scale scale(leader_of(x) / -8);
    block->d = scale.half;
    for (int i = 0; i < 16; ++i) {
      const int low = 8 + code(x[i] * scale.inverse, -8, 7), high = 8 + code(x[i + 16] * scale.inverse, -8, 7);
      block->qs[i] = static_cast<uint8_t>(low | high << 4);
    }
  }
}

// ---- Types whose codes are those of ggml's quantize_row_*_ref, and which differ only in how codes are chosen ----

// Scale, minimum if there is one, and codes of a block.
struct Fit {
  float d, m;
  uint8_t code[kBlock32];
};

// The factor for the values of a block with scale d. Unlike Scale, it is not that of the rounded scale; as in Scale, it
// is 0 where the rounded scale is.
float inverse_of(float d) { return f16_to_f32(f32_to_f16(d)) != 0 ? 1 / d : 0; }

// NaN becomes 0.
uint8_t truncate(float x, int highest) {
  return static_cast<uint8_t>(x > 0 ? x < static_cast<float>(highest) ? static_cast<int>(x) : highest : 0);
}

// Codes 0 .. highest from the smallest value to the largest.
Fit fit_range(const float* x, int highest) {
  float low = std::numeric_limits<float>::infinity(), high = -low;
  for (int i = 0; i < kBlock32; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  Fit fit;
  fit.m = low <= high ? clamp_to_half(low) : 0;  // nothing but NaN
  fit.d = low <= high ? clamp_to_half((high - fit.m) / static_cast<float>(highest)) : 0;
  const float inverse = inverse_of(fit.d);
  for (int i = 0; i < kBlock32; ++i) fit.code[i] = truncate((x[i] - fit.m) * inverse + 0.5f, highest);
  return fit;
}
Fit fit_q4_1(const float* x) { return fit_range(x, 15); }
Fit fit_q5_1(const float* x) { return fit_range(x, 31); }

// The value with the largest magnitude gets the code 0, which stands for -16.
Fit fit_q5_0(const float* x) {
  Fit fit;
  fit.d = clamp_to_half(leader_of(x) / -16);
  const float inverse = inverse_of(fit.d);
  for (int i = 0; i < kBlock32; ++i) fit.code[i] = truncate(x[i] * inverse + 16.5f, 31);
  return fit;
}

// The number of midpoints between neighbouring values of the codebook that x is not below.
uint8_t nearest_iq4_nl(float x) {
  int code = 0;
  for (int i = 0; i < 15; ++i) code += x - kIQ4NLValues[i] >= kIQ4NLValues[i + 1] - x;
  return static_cast<uint8_t>(code);
}

// The value with the largest magnitude is scaled to the first value of the codebook, and each is rounded to the
// nearest; then the scale is the one of the least squared error for these codes, weighted by the squares of the values.
Fit fit_iq4_nl(const float* x) {
  Fit fit = {};
  const float leader = leader_of(x), first = leader / kIQ4NLValues[0],
              inverse = std::fabs(leader) < 1e-15f ? 0 : 1 / first;
  float value_sum = 0, square_sum = 0;
  for (int i = 0; i < kBlock32; ++i) {
    fit.code[i] = nearest_iq4_nl(inverse * x[i]);
    const float value = kIQ4NLValues[fit.code[i]], weighted = x[i] * x[i] * value;
    value_sum += weighted * x[i];
    square_sum += weighted * value;
  }
  const float best = value_sum / square_sum;
  fit.d = inverse == 0 ? clamp_to_half(first) : clamp_to_half(std::isfinite(best) ? best : first);
  return fit;
}

template <typename Block, Fit (*kFit)(const float*)>
void store_fits(const float* x, void* to, int64_t n) {
  auto* block = static_cast<Block*>(to);
  for (; n > 0; n -= kBlock32, x += kBlock32, ++block) {
    const Fit fit = kFit(x);
    block->d = f32_to_f16(fit.d);
    if constexpr (requires { block->m; }) block->m = f32_to_f16(fit.m);
    if constexpr (requires { block->qh; }) {
      uint32_t fifths = 0;
      for (int i = 0; i < kBlock32; ++i) fifths |= static_cast<uint32_t>(fit.code[i] >> 4) << i;
      store_bits32(fifths, block->qh);
    }
    pack_nibbles32(fit.code, block->qs);
  }
}

// The types that are not stored by their from_float.
struct RowType {
  DataType type;
  void (*store)(const float* x, void* to, int64_t n);
};
constexpr RowType kRowTypes[] = {
    {DataType::kQ8_0, store_q8_0},
    {DataType::kQ4_0, store_q4_0},
    {DataType::kQ4_1, store_fits<BlockQ4_1, fit_q4_1>},
    {DataType::kQ5_0, store_fits<BlockQ5_0, fit_q5_0>},
    {DataType::kQ5_1, store_fits<BlockQ5_1, fit_q5_1>},
    {DataType::kIQ4_NL, store_fits<BlockIQ4_NL, fit_iq4_nl>},
};

}  // namespace

void store_cache_row(DataType type, const float* x, void* to, int64_t n) {
  const auto* row =
      std::find_if(std::begin(kRowTypes), std::end(kRowTypes), [&](const RowType& r) { return r.type == type; });
  (row != std::end(kRowTypes) ? row->store : traits(type).from_float)(x, to, n);
}

}  // namespace infer
