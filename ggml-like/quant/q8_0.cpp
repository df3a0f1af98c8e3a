// Q8_0: 8 bits and a scale per 32.
#include <algorithm>

#include "ggml-like/data_type.h"
#include "ggml-like/quant/fit.h"
#include "ggml-like/quant/scalar.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockQ8_0;
  static constexpr bool kHasMin = false;
  static void unpack(const Block& b, Unpacked32& u) { std::copy_n(b.qs, kBlock32, u.code); }
  static float scale(const Block& b) { return f16_to_f32(b.d); }
};

void encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockQ8_0*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock32, ++block) {
    block->d = fit_int8(values + start, importance_at(importance, start), 127, block->qs);
  }
}

}  // namespace

extern const TypeTraits kTypeQ8_0;
constinit const TypeTraits kTypeQ8_0 = {DataType::kQ8_0,
                                        "Q8_0",
                                        32,
                                        sizeof(Format::Block),
                                        true,
                                        ActivationFormat::kInt8Per32,
                                        dequantize32<Format>,
                                        encode_alike<encode>,
                                        dot32<Format>,
                                        encode};

}  // namespace infer
