// Q5_1: 5 bits, a scale and an offset per 32.
#include "ggml-like/data_type.h"
#include "ggml-like/quant/fit.h"
#include "ggml-like/quant/scalar.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockQ5_1;
  static constexpr bool kHasMin = true;
  static void unpack(const Block& b, Unpacked32& u) {
    const uint32_t high = load_bits32(b.qh);
    for (int i = 0; i < kBlock32; ++i) {
      u.code[i] = static_cast<int8_t>((nibble32(b.qs, i) | ((high >> i) & 1) << 4));
    }
  }
  static float scale(const Block& b) { return f16_to_f32(b.d); }
  static float min(const Block& b) { return f16_to_f32(b.m); }
};

void encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockQ5_1*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock32, ++block) {
    BlockQ5_1& b = *block;
    const Fit32 fit = fit_min32(values + start, importance_at(importance, start), 31);
    b.d = fit.d;
    b.m = fit.m;
    uint32_t high = 0;
    for (int i = 0; i < kBlock32; ++i) high |= static_cast<uint32_t>(fit.code[i] >> 4) << i;
    store_bits32(high, b.qh);
    pack_nibbles32(fit.code, b.qs);
  }
}

}  // namespace

extern const TypeTraits kTypeQ5_1;
constinit const TypeTraits kTypeQ5_1 = {DataType::kQ5_1,
                                        "Q5_1",
                                        32,
                                        sizeof(Format::Block),
                                        true,
                                        ActivationFormat::kInt8Per32,
                                        dequantize32<Format>,
                                        encode_alike<encode>,
                                        dot32<Format>,
                                        encode};

}  // namespace infer
