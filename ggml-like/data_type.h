// Data types of tensors, numbered as in GGUF files, and the one table that describes them.
// A quantized type stores rows as blocks of `block_size` values in `type_size` bytes; layouts are in quant/blocks.h.
// Nothing outside this table switches on a data type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace infer {

enum class DataType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ8_1 = 9,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kQ8_K = 15,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
  kNVFP4 = 40,
  kQ1_0 = 41,
  kQ2_0 = 42,
};

// The format of activations when they are multiplied with weights of a type.
enum class ActivationFormat : uint8_t {
  kNone,        // no matmul supports weights of the type
  kF32,         // float weights: activations are used unchanged
  kInt8Per256,  // super-blocks of 256: int8 with one scale per 256
  kInt8Per32,   // blocks of 32: int8 with one scale per 32
};

// One row of the table: the scalar reference of a format, which defines it in code (one file per format in quant/).
// Function pointers are null for types of which only the size is known. All are pure functions and thread-safe; n is a
// multiple of block_size, and `blocks` must be aligned like the block's struct.
struct TypeTraits {
  DataType type;
  std::string_view name;  // as GGUF tools print it: "F32", "Q4_K", "IQ4_NL"
  uint32_t block_size;    // values per block
  uint32_t type_size;     // bytes per block
  bool quantized;
  ActivationFormat activation;
  // Exact up to one rounding per value (see quant/blocks.h).
  void (*to_float)(const void* blocks, float* values, int64_t n) = nullptr;
  // Deterministic. Finite input gives finite values (clipped to the format's range; F16 and BF16 follow IEEE and
  // overflow to infinity). A block of a quantized format that contains a NaN or an infinity decodes to non-finite
  // values only.
  void (*from_float)(const float* values, void* blocks, int64_t n) = nullptr;
  // Defines the dot product of a row of n weights and a row of n activations (formulas in quant/dot.h).
  // `activations` is float[n] for kF32, Activation256[n / 256] for kInt8Per256 and Activation32[n / 32] for
  // kInt8Per32.
  float (*dot)(const void* blocks, const void* activations, int64_t n) = nullptr;
  // from_float with a weight >= 0 per value; null weights count as equal (see quant/encode.h). The pointer is null for
  // formats in which each value has one code regardless of its weight: floats, Q8_K.
  void (*encode)(const float* values, const float* importance, void* blocks, int64_t n) = nullptr;
};

// All types, in ascending order of number.
std::span<const TypeTraits> all_types();

// The row of a type, or nullptr if the number is unknown.
const TypeTraits* find_type(uint32_t number);
// The same for a type that is known to be in the table.
const TypeTraits& traits(DataType type);
// By name, in upper or lower case; nullptr if unknown.
const TypeTraits* find_type(std::string_view name);

// Bytes of a row of n values; n must be a multiple of the block size.
inline size_t row_bytes(DataType type, int64_t n) {
  const TypeTraits& t = traits(type);
  return static_cast<size_t>(n) / t.block_size * t.type_size;
}

}  // namespace infer
