// Conversions between F32 and the 16-bit and 8-bit float formats of weights, in integer arithmetic: the same bits on
// every machine, and the same as the conversion instructions of x86 (F16C) and ARM, where signalling NaNs become quiet.
// Always inlined, so that a unit compiled for a newer instruction set never exports a copy.
#pragma once

#include <cstdint>

namespace infer {

// Exact.
[[gnu::always_inline]] constexpr float f16_to_f32(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f;
  const uint32_t mantissa = half & 0x3ff;
  uint32_t magnitude = 0;
  if (exponent == 0) {
    magnitude = __builtin_bit_cast(uint32_t, static_cast<float>(mantissa) * 0x1p-24f);  // zero or denormal
  } else if (exponent < 31) {
    magnitude = (exponent + (127 - 15)) << 23 | mantissa << 13;
  } else {
    magnitude = 0x7f800000u | (mantissa ? 0x400000u : 0u) | mantissa << 13;
  }
  return __builtin_bit_cast(float, sign | magnitude);
}

// Rounds to nearest, ties to even; infinity from 65520 on.
[[gnu::always_inline]] constexpr uint16_t f32_to_f16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x477ff000u) {
    half = 0x7c00u;
  } else if (magnitude < 0x38800000u) {
    // Below 2^-14, fp16 values are multiples of 2^-24, the ulp of 0.5, so the addition rounds to one.
    half = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, magnitude) + 0.5f) - 0x3f000000u;
  } else {
    half = ((magnitude + 0xfffu + ((magnitude >> 13) & 1u)) >> 13) - ((127u - 15u) << 10);
  }
  return static_cast<uint16_t>(sign | half);
}

// Exact.
[[gnu::always_inline]] constexpr float bf16_to_f32(uint16_t value) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(value) << 16);
}

// Rounds to nearest, ties to even; a NaN stays a NaN and becomes quiet.
[[gnu::always_inline]] constexpr uint16_t f32_to_bf16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// 2^(e - 128), exact for all 256 codes: half of E8M0's value, for the doubled values of MXFP4. e = 0 and 1 give
// denormals. E8M0 reserves e = 255 for NaN, but readers of GGUF files treat it as another power of two, as we do.
[[gnu::always_inline]] constexpr float e8m0_to_f32_half(uint8_t e) {
  return __builtin_bit_cast(float, e < 2 ? 0x00200000u << e : static_cast<uint32_t>(e - 1) << 23);
}

// Half the value of E4M3 without a sign, exact, for the doubled values of NVFP4: 2^(e - 8) * (1 + m / 8), and
// 2^-7 * m / 8 for e = 0. 0x7f is zero, not NaN, for readers of GGUF files and for us; bit 7 has no effect otherwise.
[[gnu::always_inline]] constexpr float ue4m3_to_f32_half(uint8_t bits) {
  if (bits == 0x7f) return 0;
  return __builtin_bit_cast(float, static_cast<uint32_t>(bits & 0x7f) << 20) * 0x1p119f;
}

}  // namespace infer
