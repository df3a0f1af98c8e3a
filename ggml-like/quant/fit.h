// Chooses a block's scale, minimum and codes by weighted least squares: searches a fixed list of candidate scales,
// solves for the scale and minimum that suit the codes of each, and iterates from the best until nothing improves. In a
// super-block, the small integers that scale the sub-blocks and the two F16 scales above them are then improved in
// turn.
//
// `importance` holds one weight >= 0 per value, or is null: all equal. A function of the block alone, with the same
// bits on every machine. Finite input gives finite values; a block with a NaN or an infinity gets a NaN scale.
#pragma once

#include <cstdint>

namespace infer {

bool all_finite(const float* x, int n);

// The weights of the values from `start` on; null if there are none.
inline const float* importance_at(const float* importance, int64_t start) {
  return importance ? importance + start : nullptr;
}

// TypeTraits::from_float of a format with an encoder: all values have equal weight.
template <auto kEncode>
void encode_alike(const float* values, void* blocks, int64_t n) {
  kEncode(values, nullptr, blocks, n);
}

// Nearest F16 of a scale, clamped to the largest finite one.
uint16_t scale_to_f16(float scale);
inline constexpr uint16_t kF16NaN = 0x7e00;

// The values of the codes 0, 1, 2, ... of a format before scaling: low, low + 1, ..., high, or kIQ4NLValues.
struct IntegerGrid {
  int low, high;
};
struct IQ4NLGrid {};

// Blocks of 32. x ~ d * grid value.
struct Fit32 {
  uint16_t d;
  uint16_t m;  // x ~ d * code + m, fit_min32 only
  uint8_t code[32];
};
Fit32 fit_scale32(const float* x, const float* importance, IntegerGrid grid);
Fit32 fit_scale32(const float* x, const float* importance, IQ4NLGrid grid);
Fit32 fit_min32(const float* x, const float* importance, int max_code);
// x ~ d * code with codes in -largest_code .. largest_code: fills in the codes and returns d.
uint16_t fit_int8(const float* x, const float* importance, int largest_code, int8_t code[32]);

// Blocks with a single scale. x ~ d * grid value.
template <int kN>
struct FitWide {
  uint16_t d;
  uint8_t code[kN];
};
FitWide<64> fit_scale64(const float* x, const float* importance, IntegerGrid grid);
FitWide<256> fit_ternary256(const float* x, const float* importance);  // codes 0, 1, 2 for -1, 0, 1

// Super-blocks. x ~ d * scale[s] * grid value, or d * scale[s] * code - dmin * min[s].
struct Fit256 {
  uint16_t d;
  uint16_t dmin;
  int16_t scale[16];
  int16_t min[16];
  uint8_t code[256];
};
Fit256 fit_scale256_sub16(const float* x, const float* importance, IntegerGrid grid, int min_scale, int max_scale);
Fit256 fit_scale256_sub32(const float* x, const float* importance, IQ4NLGrid grid, int min_scale, int max_scale);
Fit256 fit_min256_sub16(const float* x, const float* importance, int max_code, int max_scale);
Fit256 fit_min256_sub32(const float* x, const float* importance, int max_code, int max_scale);

}  // namespace infer
