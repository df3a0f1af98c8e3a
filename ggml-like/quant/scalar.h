// to_float and dot of the block formats, written once for any format's description, a struct with
//   Block            the struct of blocks.h
// kHasMin          whether values have an offset in addition to the scale
//   unpack(b, u)     fills Unpacked32 or Unpacked256
//   scale(b)         d as F32
//   min(b)           kHasMin: m of the blocks of 32 (added), dmin of the super-blocks (subtracted)
//   kSub             super-blocks: values per sub-block, 16 or 32
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
