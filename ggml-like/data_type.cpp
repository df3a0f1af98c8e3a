#include "ggml-like/data_type.h"

#include <algorithm>
#include <array>

#include "ggml-like/error.h"
#include "ggml-like/quant/formats.h"

namespace infer {
namespace {

using enum DataType;
constexpr ActivationFormat kNoProduct = ActivationFormat::kNone;
constexpr ActivationFormat kFloats = ActivationFormat::kF32;
constexpr ActivationFormat kSuper = ActivationFormat::kInt8Per256;
constexpr ActivationFormat kSmall = ActivationFormat::kInt8Per32;

// A type this program knows only the size of.
constexpr TypeTraits size_only(DataType type, std::string_view name, uint32_t block_size, uint32_t type_size,
                               bool quantized) {
  return {type, name, block_size, type_size, quantized, kNoProduct, nullptr, nullptr, nullptr};
}

constexpr std::array kTypes = {
    TypeTraits{kF32, "F32", 1, 4, false, kFloats, f32_to_float, f32_from_float, f32_dot},
    TypeTraits{kF16, "F16", 1, 2, false, kFloats, f16_to_float, f16_from_float, f16_dot},
    TypeTraits{kQ4_0, "Q4_0", 32, 18, true, kSmall, q4_0_to_float, q4_0_from_float, q4_0_dot},
    TypeTraits{kQ4_1, "Q4_1", 32, 20, true, kSmall, q4_1_to_float, q4_1_from_float, q4_1_dot},
    TypeTraits{kQ5_0, "Q5_0", 32, 22, true, kSmall, q5_0_to_float, q5_0_from_float, q5_0_dot},
    TypeTraits{kQ5_1, "Q5_1", 32, 24, true, kSmall, q5_1_to_float, q5_1_from_float, q5_1_dot},
    TypeTraits{kQ8_0, "Q8_0", 32, 34, true, kSmall, q8_0_to_float, q8_0_from_float, q8_0_dot},
    size_only(kQ8_1, "Q8_1", 32, 36, true),
    TypeTraits{kQ2_K, "Q2_K", 256, 84, true, kSuper, q2_k_to_float, q2_k_from_float, q2_k_dot},
    TypeTraits{kQ3_K, "Q3_K", 256, 110, true, kSuper, q3_k_to_float, q3_k_from_float, q3_k_dot},
    TypeTraits{kQ4_K, "Q4_K", 256, 144, true, kSuper, q4_k_to_float, q4_k_from_float, q4_k_dot},
    TypeTraits{kQ5_K, "Q5_K", 256, 176, true, kSuper, q5_k_to_float, q5_k_from_float, q5_k_dot},
    TypeTraits{kQ6_K, "Q6_K", 256, 210, true, kSuper, q6_k_to_float, q6_k_from_float, q6_k_dot},
    TypeTraits{kQ8_K, "Q8_K", 256, 292, true, kNoProduct, q8_k_to_float, q8_k_from_float, nullptr},
    size_only(kIQ2_XXS, "IQ2_XXS", 256, 66, true),
    size_only(kIQ2_XS, "IQ2_XS", 256, 74, true),
    size_only(kIQ3_XXS, "IQ3_XXS", 256, 98, true),
    size_only(kIQ1_S, "IQ1_S", 256, 50, true),
    TypeTraits{kIQ4_NL, "IQ4_NL", 32, 18, true, kSmall, iq4_nl_to_float, iq4_nl_from_float, iq4_nl_dot},
    size_only(kIQ3_S, "IQ3_S", 256, 110, true),
    size_only(kIQ2_S, "IQ2_S", 256, 82, true),
    TypeTraits{kIQ4_XS, "IQ4_XS", 256, 136, true, kSuper, iq4_xs_to_float, iq4_xs_from_float, iq4_xs_dot},
    size_only(kI8, "I8", 1, 1, false),
    size_only(kI16, "I16", 1, 2, false),
    size_only(kI32, "I32", 1, 4, false),
    size_only(kI64, "I64", 1, 8, false),
    size_only(kF64, "F64", 1, 8, false),
    size_only(kIQ1_M, "IQ1_M", 256, 56, true),
    TypeTraits{kBF16, "BF16", 1, 2, false, kFloats, bf16_to_float, bf16_from_float, bf16_dot},
    size_only(kTQ1_0, "TQ1_0", 256, 54, true),
    size_only(kTQ2_0, "TQ2_0", 256, 66, true),
    TypeTraits{kMXFP4, "MXFP4", 32, 17, true, kSmall, mxfp4_to_float, mxfp4_from_float, mxfp4_dot},
    size_only(kNVFP4, "NVFP4", 64, 36, true),
    size_only(kQ1_0, "Q1_0", 128, 18, true),
    size_only(kQ2_0, "Q2_0", 64, 18, true),
};
static_assert(std::ranges::is_sorted(kTypes, {}, &TypeTraits::type));

constexpr char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

}  // namespace

std::span<const TypeTraits> all_types() { return kTypes; }

const TypeTraits* find_type(uint32_t number) {
  const auto row = std::ranges::lower_bound(kTypes, static_cast<DataType>(number), {}, &TypeTraits::type);
  return row != kTypes.end() && static_cast<uint32_t>(row->type) == number ? &*row : nullptr;
}

const TypeTraits& traits(DataType type) {
  const TypeTraits* row = find_type(static_cast<uint32_t>(type));
  CHECK_INTERNAL(row != nullptr);
  return *row;
}

const TypeTraits* find_type(std::string_view name) {
  const auto row = std::ranges::find_if(
      kTypes, [&](const TypeTraits& t) { return std::ranges::equal(t.name, name, {}, upper, upper); });
  return row != kTypes.end() ? &*row : nullptr;
}

}  // namespace infer
