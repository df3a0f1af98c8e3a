#include "ggml-like/data_type.h"

#include <algorithm>
#include <array>

#include "ggml-like/error.h"

namespace infer {

// Each is defined at the end of its format's file in quant/.
extern const TypeTraits kTypeF32, kTypeF16, kTypeQ4_0, kTypeQ4_1, kTypeQ5_0, kTypeQ5_1, kTypeQ8_0, kTypeQ2_K, kTypeQ3_K,
    kTypeQ4_K, kTypeQ5_K, kTypeQ6_K, kTypeQ8_K, kTypeIQ4_NL, kTypeIQ4_XS, kTypeBF16, kTypeMXFP4;

namespace {

// A type of which only the size is known.
constexpr TypeTraits size_only(DataType type, std::string_view name, uint32_t block_size, uint32_t type_size,
                               bool quantized) {
  return {type, name, block_size, type_size, quantized, ActivationFormat::kNone};
}

// In order of the numbers. Built on first use: rows from other files are not constant expressions here.
std::span<const TypeTraits> table() {
  using enum DataType;
  static const std::array kTypes = {
      kTypeF32,
      kTypeF16,
      kTypeQ4_0,
      kTypeQ4_1,
      kTypeQ5_0,
      kTypeQ5_1,
      kTypeQ8_0,
      size_only(kQ8_1, "Q8_1", 32, 36, true),
      kTypeQ2_K,
      kTypeQ3_K,
      kTypeQ4_K,
      kTypeQ5_K,
      kTypeQ6_K,
      kTypeQ8_K,
      size_only(kIQ2_XXS, "IQ2_XXS", 256, 66, true),
      size_only(kIQ2_XS, "IQ2_XS", 256, 74, true),
      size_only(kIQ3_XXS, "IQ3_XXS", 256, 98, true),
      size_only(kIQ1_S, "IQ1_S", 256, 50, true),
      kTypeIQ4_NL,
      size_only(kIQ3_S, "IQ3_S", 256, 110, true),
      size_only(kIQ2_S, "IQ2_S", 256, 82, true),
      kTypeIQ4_XS,
      size_only(kI8, "I8", 1, 1, false),
      size_only(kI16, "I16", 1, 2, false),
      size_only(kI32, "I32", 1, 4, false),
      size_only(kI64, "I64", 1, 8, false),
      size_only(kF64, "F64", 1, 8, false),
      size_only(kIQ1_M, "IQ1_M", 256, 56, true),
      kTypeBF16,
      size_only(kTQ1_0, "TQ1_0", 256, 54, true),
      size_only(kTQ2_0, "TQ2_0", 256, 66, true),
      kTypeMXFP4,
      size_only(kNVFP4, "NVFP4", 64, 36, true),
      size_only(kQ1_0, "Q1_0", 128, 18, true),
      size_only(kQ2_0, "Q2_0", 64, 18, true),
  };
  return kTypes;
}

constexpr char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

}  // namespace

std::span<const TypeTraits> all_types() { return table(); }

const TypeTraits* find_type(uint32_t number) {
  const auto row = std::ranges::lower_bound(table(), static_cast<DataType>(number), {}, &TypeTraits::type);
  return row != table().end() && static_cast<uint32_t>(row->type) == number ? &*row : nullptr;
}

const TypeTraits& traits(DataType type) {
  const TypeTraits* row = find_type(static_cast<uint32_t>(type));
  CHECK_INTERNAL(row != nullptr);
  return *row;
}

const TypeTraits* find_type(std::string_view name) {
  const auto row = std::ranges::find_if(
      table(), [&](const TypeTraits& t) { return std::ranges::equal(t.name, name, {}, upper, upper); });
  return row != table().end() ? &*row : nullptr;
}

}  // namespace infer
