// to_float and dot of the block formats, written once for any format's description, a struct with
//   Block            the struct of blocks.h
// kHasMin          whether values have an offset in addition to the scale
//   unpack(b, u)     fills Unpacked32 or Unpacked256
//   scale(b)         d as F32
//   min(b)           kHasMin: m of the blocks of 32 (added), dmin of the super-blocks (subtracted)
//   kSub             super-blocks: values per sub-block, 16 or 32
// A format whose blocks are made of kParts blocks of 32 has
//   unpack(b, part, u)
//   kSub             values that share a scale: 16 or 32
//   scale(b, part, s) d of values kSub * s .. of the part
// The formulas are those of blocks.h and dot.h.
#pragma once

#include <cmath>
#include <cstdint>

#include "ggml-like/half.h"
#include "ggml-like/quant/activation.h"
#include "ggml-like/quant/blocks.h"

namespace infer {

struct Unpacked32 {
  int8_t code[32];  // offset subtracted, or looked up
};

struct Unpacked256 {
  int8_t code[256];
  int16_t scale[16];  // of each sub-block, offset subtracted
  int16_t min[16];    // only in formats with minima
};

inline int32_t dot_int(const int8_t* a, const int8_t* b, int n) {
  int32_t sum = 0;
  for (int i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

template <typename Format>
void dequantize32(const void* blocks, float* values, int64_t n) {
  const auto* block = static_cast<const typename Format::Block*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock32, ++block) {
    Unpacked32 u;
    Format::unpack(*block, u);
    const float d = Format::scale(*block);
    for (int i = 0; i < kBlock32; ++i) {
      float x = d * static_cast<float>(u.code[i]);
      if constexpr (Format::kHasMin) x += Format::min(*block);
      values[start + i] = x;
    }
  }
}

template <typename Format>
float dot32(const void* blocks, const void* activations, int64_t n) {
  const auto* block = static_cast<const typename Format::Block*>(blocks);
  const auto* x = static_cast<const Activation32*>(activations);
  float acc = 0;
  for (int64_t k = 0; k < n / kBlock32; ++k, ++x, ++block) {
    Unpacked32 u;
    Format::unpack(*block, u);
    float v = static_cast<float>(dot_int(u.code, x->q, kBlock32)) * Format::scale(*block);
    if constexpr (Format::kHasMin) v = std::fma(static_cast<float>(x->sum32), Format::min(*block), v);
    acc = std::fma(v, x->d, acc);
  }
  return acc;
}

template <typename Format>
void dequantize_parts(const void* blocks, float* values, int64_t n) {
  const auto* block = static_cast<const typename Format::Block*>(blocks);
  for (int64_t start = 0; start < n; start += Format::kParts * kBlock32, ++block) {
    for (int part = 0; part < Format::kParts; ++part) {
      Unpacked32 u;
      Format::unpack(*block, part, u);
      float* out = values + start + kBlock32 * part;
      for (int i = 0; i < kBlock32; ++i) {
        out[i] = Format::scale(*block, part, i / Format::kSub) * static_cast<float>(u.code[i]);
      }
    }
  }
}

template <typename Format>
float dot_parts(const void* blocks, const void* activations, int64_t n) {
  const auto* block = static_cast<const typename Format::Block*>(blocks);
  const auto* x = static_cast<const Activation32*>(activations);
  float acc = 0;
  for (int64_t k = 0; k < n / (Format::kParts * kBlock32); ++k, ++block) {
    for (int part = 0; part < Format::kParts; ++part, ++x) {
      Unpacked32 u;
      Format::unpack(*block, part, u);
      for (int s = 0; s < kBlock32 / Format::kSub; ++s) {
        const int32_t isum = dot_int(u.code + Format::kSub * s, x->q + Format::kSub * s, Format::kSub);
        acc = std::fma(static_cast<float>(isum) * Format::scale(*block, part, s), x->d, acc);
      }
    }
  }
  return acc;
}

template <typename Format>
void dequantize256(const void* blocks, float* values, int64_t n) {
  const auto* block = static_cast<const typename Format::Block*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock256, ++block) {
    Unpacked256 u;
    Format::unpack(*block, u);
    for (int i = 0; i < kBlock256; ++i) {
      const int s = i / Format::kSub;
      const float d = Format::scale(*block) * static_cast<float>(u.scale[s]);
      float x = d * static_cast<float>(u.code[i]);
      if constexpr (Format::kHasMin) x -= Format::min(*block) * static_cast<float>(u.min[s]);
      values[start + i] = x;
    }
  }
}

template <typename Format>
float dot256(const void* blocks, const void* activations, int64_t n) {
  const auto* block = static_cast<const typename Format::Block*>(blocks);
  const auto* x = static_cast<const Activation256*>(activations);
  float acc = 0;
  for (int64_t k = 0; k < n / kBlock256; ++k, ++x, ++block) {
    Unpacked256 u;
    Format::unpack(*block, u);
    int32_t isum = 0;
    for (int s = 0; s < kBlock256 / Format::kSub; ++s) {
      isum += u.scale[s] * dot_int(u.code + Format::kSub * s, x->q + Format::kSub * s, Format::kSub);
    }
    float v = static_cast<float>(isum) * Format::scale(*block);
    if constexpr (Format::kHasMin) {
      const int16_t* sums = Format::kSub == 16 ? x->sum16 : x->sum32;
      int32_t msum = 0;
      for (int s = 0; s < kBlock256 / Format::kSub; ++s) msum += u.min[s] * sums[s];
      v = std::fma(-static_cast<float>(msum), Format::min(*block), v);
    }
    acc = std::fma(v, x->d, acc);
  }
  return acc;
}

// The scales of super-blocks that store s for 2 s + 1, as nibbles: two in a byte, the first low.
inline int16_t odd_scale(const uint8_t* nibbles, int s) {
  return static_cast<int16_t>(2 * ((nibbles[s / 2] >> (4 * (s % 2))) & 15) + 1);
}

// The eight signs of which `signs` has the first seven: the last makes the number of negative values even.
inline uint32_t even_signs(uint32_t signs) {
  return (signs & 127) | static_cast<uint32_t>(__builtin_parity(signs & 127)) << 7;
}

// The magnitudes in the bytes of a codebook's entry, negated where a bit of `signs` is set.
template <typename Entry>
void unpack_signed(Entry magnitudes, uint32_t signs, int8_t* code) {
  for (int i = 0; i < static_cast<int>(sizeof(Entry)); ++i) {
    const int magnitude = static_cast<int>((magnitudes >> (8 * i)) & 255);
    code[i] = static_cast<int8_t>(signs >> i & 1 ? -magnitude : magnitude);
  }
}

// The codes 8 t + 1, or 8 t - 1, of the eight values 8 (t + 1) in an entry of kIQ1Grid.
inline void unpack_shifted(uint64_t entry, bool minus, int8_t* code) {
  for (int i = 0; i < 8; ++i) {
    code[i] = static_cast<int8_t>(static_cast<int>((entry >> (8 * i)) & 255) - 8 + (minus ? -1 : 1));
  }
}

// Bits of 32 consecutive 5-bit codes: bit i is bit 4 of code i.
inline uint32_t load_bits32(const uint8_t bytes[4]) {
  return bytes[0] | uint32_t{bytes[1]} << 8 | uint32_t{bytes[2]} << 16 | uint32_t{bytes[3]} << 24;
}
inline void store_bits32(uint32_t bits, uint8_t bytes[4]) {
  for (int k = 0; k < 4; ++k) bytes[k] = static_cast<uint8_t>(bits >> (8 * k));
}

// Nibbles of a block of 32: values 0..15 low, 16..31 high.
inline int nibble32(const uint8_t qs[16], int i) { return (qs[i % 16] >> (4 * (i / 16))) & 15; }
inline void pack_nibbles32(const uint8_t code[32], uint8_t qs[16]) {
  for (int i = 0; i < 16; ++i) qs[i] = static_cast<uint8_t>((code[i] & 15) | (code[i + 16] & 15) << 4);
}

}  // namespace infer
