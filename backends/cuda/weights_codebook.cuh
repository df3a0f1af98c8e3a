// The part of weights.cuh for types with codebooks, whose packed entries are in ggml-like/quant/codebooks_data.h.
#pragma once

#include "backends/cuda/weights.cuh"
#include "ggml-like/quant/codebooks_data.h"

namespace infer::cuda {

template <size_t kEntries>
struct Codebook {
  uint16_t entry[kEntries];
};
template <size_t kEntries>
constexpr Codebook<kEntries> codebook(const uint16_t (&packed)[kEntries]) {
  Codebook<kEntries> book = {};
  for (size_t i = 0; i < kEntries; ++i) book.entry[i] = packed[i];
  return book;
}
static __device__ const auto kDeviceIQ2XXS = codebook(kPackedIQ2XXS);
static __device__ const auto kDeviceIQ2XS = codebook(kPackedIQ2XS);
static __device__ const auto kDeviceIQ2S = codebook(kPackedIQ2S);
static __device__ const auto kDeviceIQ3XXS = codebook(kPackedIQ3XXS);
static __device__ const auto kDeviceIQ3S = codebook(kPackedIQ3S);
static __device__ const auto kDeviceIQ1 = codebook(kPackedIQ1);

// ---- Magnitudes from a codebook, and signs ----

// Four magnitudes, negated where one of the low four bits of `signs` is set.
__device__ inline uint32_t with_signs(uint32_t magnitudes, uint32_t signs) {
  const uint32_t flags = (spread4(signs & 15u) >> 4) * 255u;
  return minus4(magnitudes & ~flags, magnitudes & flags);
}
// Seven signs of eight values; the eighth makes the number of negative ones even.
__device__ inline uint32_t even_signs(uint32_t bits) {
  return (bits & 127u) | static_cast<uint32_t>(__popc(bits & 127u) & 1) << 7;
}
// The magnitudes 8, 25 and 43 of IQ2.
__device__ inline uint32_t iq2_magnitudes(uint32_t bits) {
  const uint32_t levels = spread_pairs(bits & 255u);
  return 0x08080808u + (levels & 0x01010101u) * 17u + (levels >> 1 & 0x01010101u) * 35u;
}
// Values 8 * half .. of a group of 16, from a packed entry of eight magnitudes.
__device__ inline void set_iq2(Codes& c, int half, uint32_t entry, uint32_t signs) {
  c.word[2 * half] = with_signs(iq2_magnitudes(entry), signs);
  c.word[2 * half + 1] = with_signs(iq2_magnitudes(entry >> 8), signs >> 4);
}
__device__ inline float odd_scale(uint32_t s) { return static_cast<float>(2u * s + 1u); }

struct IQ2_XXS : Signed, Whole32 {
  using Block = BlockIQ2_XXS;
  static constexpr int kValues = 256;
  __device__ static Codes load(const Block& b, int g) {
    const uint16_t* const q = b.qs + 4 * (g >> 1);
    const int first = 2 * (g & 1);
    const uint32_t indices = q[g & 1], rest = load2x2(q + 2);
    Codes c = {{}, half_to_float(b.d) * (0.125f * odd_scale(rest >> 28)), 0};
    INFER_UNROLL
    for (int h = 0; h < 2; ++h) {
      set_iq2(c, h, kDeviceIQ2XXS.entry[indices >> (8 * h) & 255u], even_signs(rest >> (7 * (first + h))));
    }
    return c;
  }
};
struct IQ2_XS : Signed, Halves32 {
  using Block = BlockIQ2_XS;
  static constexpr int kValues = 256;
  __device__ static Codes load(const Block& b, int g) {
    Codes c = {{}, half_to_float(b.d) * (0.125f * odd_scale(b.scales[g >> 1] >> (4 * (g & 1)) & 15u)), 0};
    INFER_UNROLL
    for (int h = 0; h < 2; ++h) {
      const uint32_t packed = b.qs[2 * g + h];
      set_iq2(c, h, kDeviceIQ2XS.entry[packed & 511u], even_signs(packed >> 9));
    }
    return c;
  }
};
struct IQ2_S : Signed, Halves32 {
  using Block = BlockIQ2_S;
  static constexpr int kValues = 256;
  __device__ static Codes load(const Block& b, int g) {
    const uint32_t high = b.qh[g >> 1] >> (4 * (g & 1));
    Codes c = {{}, half_to_float(b.d) * (0.125f * odd_scale(b.scales[g >> 1] >> (4 * (g & 1)) & 15u)), 0};
    INFER_UNROLL
    for (int h = 0; h < 2; ++h) {
      set_iq2(c, h, kDeviceIQ2S.entry[b.qs[2 * g + h] | (high >> (2 * h) & 3u) << 8], b.signs[2 * g + h]);
    }
    return c;
  }
};
struct IQ3_XXS : Signed, Whole32 {
  using Block = BlockIQ3_XXS;
  static constexpr int kValues = 256;
  __device__ static Codes load(const Block& b, int g) {
    const uint32_t rest = load2x2(b.signs_and_scales + 4 * (g >> 1)), bits = rest >> (14 * (g & 1));
    const uint32_t signs = even_signs(bits) | even_signs(bits >> 7) << 8;
    Codes c = {{}, half_to_float(b.d) * (0.25f * odd_scale(rest >> 28)), 0};
    INFER_UNROLL
    for (int j = 0; j < 4; ++j) {
      const uint32_t levels = spread_triples(kDeviceIQ3XXS.entry[b.qs[4 * g + j]]);
      // 4, 12, 20, ..., 52 and 62.
      const uint32_t last = levels & levels >> 1 & levels >> 2 & 0x01010101u;
      c.word[j] = with_signs(0x04040404u + levels * 8u + last * 2u, signs >> (4 * j));
    }
    return c;
  }
};
struct IQ3_S : Signed, Whole32 {
  using Block = BlockIQ3_S;
  static constexpr int kValues = 256;
  __device__ static Codes load(const Block& b, int g) {
    const uint32_t high = b.qh[g >> 1] >> (4 * (g & 1)), signs = b.signs[2 * g] | b.signs[2 * g + 1] << 8;
    Codes c = {{}, half_to_float(b.d) * odd_scale(b.scales[g >> 2] >> (4 * (g >> 1 & 1)) & 15u), 0};
    INFER_UNROLL
    for (int j = 0; j < 4; ++j) {
      const uint32_t levels = spread_triples(kDeviceIQ3S.entry[b.qs[4 * g + j] | (high >> j & 1u) << 8]);
      c.word[j] = with_signs(0x01010101u + levels * 2u, signs >> (4 * j));
    }
    return c;
  }
};

// ---- Ternary values from a codebook, times eight, and a shift ----

__device__ inline void set_iq1(Codes& c, int half, uint32_t entry, bool minus) {
  const uint32_t less = minus ? 0x09090909u : 0x07070707u;
  INFER_UNROLL
  for (int j = 0; j < 2; ++j) c.word[2 * half + j] = minus4(spread_pairs(entry >> (8 * j) & 255u) * 8u, less);
}
struct IQ1_S : Signed, Whole32 {
  using Block = BlockIQ1_S;
  static constexpr int kValues = 256;
  __device__ static Codes load(const Block& b, int g) {
    const uint32_t rest = b.qh[g >> 1], high = rest >> (6 * (g & 1));
    Codes c = {{}, half_to_float(b.d) * (0.125f * odd_scale(rest >> 12 & 7u)), 0};
    INFER_UNROLL
    for (int h = 0; h < 2; ++h) {
      set_iq1(c, h, kDeviceIQ1.entry[b.qs[2 * g + h] | (high >> (3 * h) & 7u) << 8], (rest & 0x8000u) != 0u);
    }
    return c;
  }
};
struct IQ1_M : Signed, Halves32 {
  using Block = BlockIQ1_M;
  static constexpr int kValues = 256;
  __device__ static Codes load(const Block& b, int g) {
    const uint32_t first = load4(b.scales), second = load4(b.scales + 4);
    const uint32_t scales = (g < 8 ? first : second) >> (16 * (g >> 2 & 1));
    const uint32_t d = (first >> 12 & 15u) | (first >> 24 & 0xf0u) | (second >> 12 & 15u) << 8 | (second >> 28) << 12;
    Codes c = {{}, half_to_float(static_cast<uint16_t>(d)) * (0.125f * odd_scale(scales >> (3 * (g & 3)) & 7u)), 0};
    INFER_UNROLL
    for (int h = 0; h < 2; ++h) {
      const uint32_t nibble = b.qh[g] >> (4 * h);
      set_iq1(c, h, kDeviceIQ1.entry[b.qs[2 * g + h] | (nibble & 7u) << 8], (nibble & 8u) != 0u);
    }
    return c;
  }
};

}  // namespace infer::cuda
