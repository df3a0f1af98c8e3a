#include "ggml-like/data_type.h"

#include <algorithm>
#include <array>

#include "ggml-like/error.h"

namespace infer {

// Each is defined at the end of its format's file in quant/.
extern const TypeTraits kTypeF32, kTypeF16, kTypeQ4_0, kTypeQ4_1, kTypeQ5_0, kTypeQ5_1, kTypeQ8_0, kTypeQ2_K, kTypeQ3_K,
    kTypeQ4_K, kTypeQ5_K, kTypeQ6_K, kTypeQ8_K, kTypeIQ2_XXS, kTypeIQ2_XS, kTypeIQ3_XXS, kTypeIQ1_S, kTypeIQ4_NL,
    kTypeIQ3_S, kTypeIQ2_S, kTypeIQ4_XS, kTypeIQ1_M, kTypeBF16, kTypeTQ1_0, kTypeTQ2_0, kTypeMXFP4, kTypeNVFP4,
    kTypeQ1_0, kTypeQ2_0;

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
      kTypeIQ2_XXS,
      kTypeIQ2_XS,
      kTypeIQ3_XXS,
      kTypeIQ1_S,
      kTypeIQ4_NL,
      kTypeIQ3_S,
      kTypeIQ2_S,
      kTypeIQ4_XS,
      size_only(kI8, "I8", 1, 1, false),
      size_only(kI16, "I16", 1, 2, false),
      size_only(kI32, "I32", 1, 4, false),
      size_only(kI64, "I64", 1, 8, false),
      size_only(kF64, "F64", 1, 8, false),
      kTypeIQ1_M,
      kTypeBF16,
      kTypeTQ1_0,
      kTypeTQ2_0,
      kTypeMXFP4,
      kTypeNVFP4,
      kTypeQ1_0,
      kTypeQ2_0,
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
