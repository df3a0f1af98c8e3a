#include "ggml-like/quant/encode.h"

#include <algorithm>

#include "ggml-like/error.h"
#include "ggml-like/quant/formats.h"

namespace infer {
namespace {

// The formats that choose scales. Of the others (floats, Q8_K) every value has one code, whatever its weight.
struct Encoder {
  DataType type;
  void (*encode)(const float* values, const float* importance, void* blocks, int64_t n);
};

constexpr Encoder kEncoders[] = {
    {DataType::kQ4_0, q4_0_encode},   {DataType::kQ4_1, q4_1_encode},     {DataType::kQ5_0, q5_0_encode},
    {DataType::kQ5_1, q5_1_encode},   {DataType::kQ8_0, q8_0_encode},     {DataType::kQ2_K, q2_k_encode},
    {DataType::kQ3_K, q3_k_encode},   {DataType::kQ4_K, q4_k_encode},     {DataType::kQ5_K, q5_k_encode},
    {DataType::kQ6_K, q6_k_encode},   {DataType::kIQ4_NL, iq4_nl_encode}, {DataType::kIQ4_XS, iq4_xs_encode},
    {DataType::kMXFP4, mxfp4_encode},
};

}  // namespace

void encode_blocks(DataType type, const float* values, const float* importance, void* blocks, int64_t n) {
  const auto* row = std::find_if(std::begin(kEncoders), std::end(kEncoders), [&](auto& e) { return e.type == type; });
  if (row != std::end(kEncoders)) return row->encode(values, importance, blocks, n);
  CHECK_INTERNAL(traits(type).from_float != nullptr);
  traits(type).from_float(values, blocks, n);
}

}  // namespace infer
