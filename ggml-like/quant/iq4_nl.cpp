// IQ4_NL: 4-bit index into a fixed table and a scale per 32.
#include "ggml-like/data_type.h"
#include "ggml-like/quant/fit.h"
#include "ggml-like/quant/scalar.h"
#include "ggml-like/quant/tables.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockIQ4_NL;
  static constexpr bool kHasMin = false;
  static void unpack(const Block& b, Unpacked32& u) {
    for (int i = 0; i < kBlock32; ++i) u.code[i] = static_cast<int8_t>(kIQ4NLValues[nibble32(b.qs, i)]);
  }
  static float scale(const Block& b) { return f16_to_f32(b.d); }
};

void encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockIQ4_NL*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock32, ++block) {
    BlockIQ4_NL& b = *block;
    const Fit32 fit = fit_scale32(values + start, importance_at(importance, start), IQ4NLGrid{});
    b.d = fit.d;
    pack_nibbles32(fit.code, b.qs);
  }
}

}  // namespace

extern const TypeTraits kTypeIQ4_NL;
constinit const TypeTraits kTypeIQ4_NL = {DataType::kIQ4_NL,
                                          "IQ4_NL",
                                          32,
                                          sizeof(Format::Block),
                                          true,
                                          ActivationFormat::kInt8Per32,
                                          dequantize32<Format>,
                                          encode_alike<encode>,
                                          dot32<Format>,
                                          encode};

}  // namespace infer
