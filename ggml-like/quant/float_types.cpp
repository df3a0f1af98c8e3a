// F32, F16 and BF16: conversion is in half.h; the dot product is formula 4 of dot.h.
#include <bit>
#include <cmath>
#include <cstring>

#include "ggml-like/data_type.h"
#include "ggml-like/half.h"
#include "ggml-like/quant/dot.h"

namespace infer {
namespace {

template <auto kConvert>
void convert_to_float(const void* blocks, float* values, int64_t n) {
  const auto* w = static_cast<const uint16_t*>(blocks);
  for (int64_t i = 0; i < n; ++i) values[i] = kConvert(w[i]);
}

template <auto kConvert>
void convert_from_float(const float* values, void* blocks, int64_t n) {
  auto* w = static_cast<uint16_t*>(blocks);
  for (int64_t i = 0; i < n; ++i) w[i] = kConvert(values[i]);
}

template <typename Weight, auto kConvert>
float dot(const void* blocks, const void* activations, int64_t n) {
  const auto* w = static_cast<const Weight*>(blocks);
  const auto* x = static_cast<const float*>(activations);
  float p[16] = {};
  for (int64_t i = 0; i < n; ++i) p[i % 16] = std::fma(kConvert(w[i]), x[i], p[i % 16]);
  return reduce16(p);
}

constexpr auto kF16ToF32 = [](uint16_t w) { return f16_to_f32(w); };
// The same without branches, for rows: the shifted bits are the number times 2^-112, including its denormals.
constexpr auto kF16ToF32ByScaling = [](uint16_t w) {
  const int32_t moved = (w & 0x7fff) << 13;
  constexpr int32_t kInfinity = 0x7c00 << 13;
  int32_t bits = std::bit_cast<int32_t>(std::bit_cast<float>(moved) * 0x1p112f);
  bits |= moved >= kInfinity ? 0x7f800000 : 0;
  bits |= moved > kInfinity ? 0x400000 : 0;
  return std::bit_cast<float>(static_cast<uint32_t>(bits) | static_cast<uint32_t>(w & 0x8000) << 16);
};
constexpr auto kF32ToF16 = [](float v) { return f32_to_f16(v); };
constexpr auto kBF16ToF32 = [](uint16_t w) { return bf16_to_f32(w); };
constexpr auto kF32ToBF16 = [](float v) { return f32_to_bf16(v); };
constexpr auto kSame = [](float w) { return w; };

void copy_to_float(const void* blocks, float* values, int64_t n) {
  if (n > 0) std::memmove(values, blocks, static_cast<size_t>(n) * sizeof(float));
}
void copy_from_float(const float* values, void* blocks, int64_t n) {
  if (n > 0) std::memmove(blocks, values, static_cast<size_t>(n) * sizeof(float));
}

}  // namespace

extern const TypeTraits kTypeF32, kTypeF16, kTypeBF16;
constinit const TypeTraits kTypeF32 = {
    DataType::kF32, "F32", 1, 4, false, ActivationFormat::kF32, copy_to_float, copy_from_float, dot<float, kSame>};
constinit const TypeTraits kTypeF16 = {DataType::kF16,
                                       "F16",
                                       1,
                                       2,
                                       false,
                                       ActivationFormat::kF32,
                                       convert_to_float<kF16ToF32ByScaling>,
                                       convert_from_float<kF32ToF16>,
                                       dot<uint16_t, kF16ToF32>};
constinit const TypeTraits kTypeBF16 = {DataType::kBF16,
                                        "BF16",
                                        1,
                                        2,
                                        false,
                                        ActivationFormat::kF32,
                                        convert_to_float<kBF16ToF32>,
                                        convert_from_float<kF32ToBF16>,
                                        dot<uint16_t, kBF16ToF32>};

}  // namespace infer
