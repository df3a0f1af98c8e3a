// Q4_0: 4 bits and a scale per 32.
#include "ggml-like/data_type.h"
#include "ggml-like/quant/fit.h"
#include "ggml-like/quant/scalar.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockQ4_0;
  static constexpr bool kHasMin = false;
  static void unpack(const Block& b, Unpacked32& u) {
    for (int i = 0; i < kBlock32; ++i) u.code[i] = static_cast<int8_t>(nibble32(b.qs, i) - 8);
  }
  static float scale(const Block& b) { return f16_to_f32(b.d); }
};

void encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockQ4_0*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock32, ++block) {
    BlockQ4_0& b = *block;
    const Fit32 fit = fit_scale32(values + start, importance_at(importance, start), IntegerGrid{-8, 7});
    b.d = fit.d;
    pack_nibbles32(fit.code, b.qs);
  }
}

}  // namespace

extern const TypeTraits kTypeQ4_0;
constinit const TypeTraits kTypeQ4_0 = {DataType::kQ4_0,
                                        "Q4_0",
                                        32,
                                        sizeof(Format::Block),
                                        true,
                                        ActivationFormat::kInt8Per32,
                                        dequantize32<Format>,
                                        encode_alike<encode>,
                                        dot32<Format>,
                                        encode};

}  // namespace infer
