// The weight types of this backend: from a data type to the code that reads it.
#pragma once

#include "backends/cuda/weights_codebook.cuh"
#include "ggml-like/data_type.h"

namespace infer::cuda {

// Types whose rows are numbers: load(row, i) is value i, load8() values i to i + 7, at a multiple of 16 bytes.
struct F32 {
  __device__ static float load(const uint8_t* row, int64_t i) { return reinterpret_cast<const float*>(row)[i]; }
  __device__ static void load8(const uint8_t* row, int64_t i, float (&to)[8]) {
    INFER_UNROLL
    for (int half = 0; half < 2; ++half) {
      const Words4 w = load16(row + 4 * i + 16 * half);
      INFER_UNROLL
      for (int j = 0; j < 4; ++j) to[4 * half + j] = __uint_as_float(w.word[j]);
    }
  }
};
struct F16 {
  __device__ static float load(const uint8_t* row, int64_t i) {
    return half_to_float(reinterpret_cast<const uint16_t*>(row)[i]);
  }
  __device__ static void load8(const uint8_t* row, int64_t i, float (&to)[8]) {
    const Words4 w = load16(row + 2 * i);
    INFER_UNROLL
    for (int j = 0; j < 8; ++j) to[j] = half_to_float(static_cast<uint16_t>(w.word[j / 2] >> (16 * (j % 2))));
  }
};
struct BF16 {
  __device__ static float load(const uint8_t* row, int64_t i) {
    return __uint_as_float(static_cast<uint32_t>(reinterpret_cast<const uint16_t*>(row)[i]) << 16);
  }
  __device__ static void load8(const uint8_t* row, int64_t i, float (&to)[8]) {
    const Words4 w = load16(row + 2 * i);
    INFER_UNROLL
    for (int j = 0; j < 8; ++j) to[j] = __uint_as_float(j % 2 ? w.word[j / 2] & 0xffff0000u : w.word[j / 2] << 16);
  }
};

// Calls f with an object of the type's struct. Returns false, and calls nothing, for a type of another kind.
template <typename F>
bool with_float_format(DataType type, F f) {
  switch (type) {
    case DataType::kF32:
      return f(F32{}), true;
    case DataType::kF16:
      return f(F16{}), true;
    case DataType::kBF16:
      return f(BF16{}), true;
    default:
      return false;
  }
}
template <typename F>
bool with_quantized_format(DataType type, F f) {
  switch (type) {
    case DataType::kQ4_0:
      return f(Q4_0{}), true;
    case DataType::kQ4_1:
      return f(Q4_1{}), true;
    case DataType::kQ5_0:
      return f(Q5_0{}), true;
    case DataType::kQ5_1:
      return f(Q5_1{}), true;
    case DataType::kQ8_0:
      return f(Q8_0{}), true;
    case DataType::kQ2_K:
      return f(Q2_K{}), true;
    case DataType::kQ3_K:
      return f(Q3_K{}), true;
    case DataType::kQ4_K:
      return f(Q4_K{}), true;
    case DataType::kQ5_K:
      return f(Q5_K{}), true;
    case DataType::kQ6_K:
      return f(Q6_K{}), true;
    case DataType::kIQ2_XXS:
      return f(IQ2_XXS{}), true;
    case DataType::kIQ2_XS:
      return f(IQ2_XS{}), true;
    case DataType::kIQ2_S:
      return f(IQ2_S{}), true;
    case DataType::kIQ3_XXS:
      return f(IQ3_XXS{}), true;
    case DataType::kIQ3_S:
      return f(IQ3_S{}), true;
    case DataType::kIQ1_S:
      return f(IQ1_S{}), true;
    case DataType::kIQ1_M:
      return f(IQ1_M{}), true;
    case DataType::kIQ4_NL:
      return f(IQ4_NL{}), true;
    case DataType::kIQ4_XS:
      return f(IQ4_XS{}), true;
    case DataType::kTQ1_0:
      return f(TQ1_0{}), true;
    case DataType::kTQ2_0:
      return f(TQ2_0{}), true;
    case DataType::kMXFP4:
      return f(MXFP4{}), true;
    case DataType::kNVFP4:
      return f(NVFP4{}), true;
    case DataType::kQ1_0:
      return f(Q1_0{}), true;
    case DataType::kQ2_0:
      return f(Q2_0{}), true;
    default:
      return false;
  }
}

// Whether matmuls take weights of the type.
inline bool is_weight_type(DataType type) {
  const auto nothing = [](auto) {};
  return with_float_format(type, nothing) || with_quantized_format(type, nothing);
}

}  // namespace infer::cuda
