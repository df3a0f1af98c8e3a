// Activations of a quantized matmul: int8 values with one F32 scale per 256 values for super-block formats and per 32
// for formats of 32, and the exact sums that weight formats with an offset or minimum need. (With one scale per 256 for
// both, formats of 32 had up to twice the error.)
//
// Quantization of a block x[0..n): a = max |x[i]|; d = a / 127 (one IEEE division); q[i] = round_to_nearest_even(x[i] *
// (127 / a)), all zero if 127 / a is not finite (a is zero or below about 2^-121). A block with a NaN or infinity gets
// d = NaN (quiet, positive) and q = 0, so the result is NaN and never undefined. Padding is zero.
#pragma once

#include <cstdint>

namespace infer {

struct alignas(64) Activation256 {
  int8_t q[256];
  int16_t sum16[16];  // sum of q over each 16 values
  int16_t sum32[8];   // sum of q over each 32 values
  float d;            // scale: x[i] ~ d * q[i]
  int32_t peak16;     // largest sum of |q| over 16 values
  int32_t padding[2];
};
static_assert(sizeof(Activation256) == 320);

struct Activation32 {
  int8_t q[32];
  int16_t sum16[2];
  int16_t sum32;
  int16_t padding;
  float d;
  int32_t padding2;
};
static_assert(sizeof(Activation32) == 48);

// n = 256 * blocks or 32 * blocks values.
void quantize_activations(const float* x, Activation256* blocks, int64_t n_blocks);
void quantize_activations(const float* x, Activation32* blocks, int64_t n_blocks);

}  // namespace infer
