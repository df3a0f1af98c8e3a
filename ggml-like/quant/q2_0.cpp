// Q2_0: 2 bits and a scale per 64.
#include "ggml-like/data_type.h"
#include "ggml-like/quant/fit.h"
#include "ggml-like/quant/scalar.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockQ2_0;
  static constexpr int kParts = kBlockQ2_0 / kBlock32;
  static constexpr int kSub = 32;
  static void unpack(const Block& b, int part, Unpacked32& u) {
    for (int i = 0; i < kBlock32; ++i) {
      u.code[i] = static_cast<int8_t>((b.qs[8 * part + i / 4] >> (2 * (i % 4)) & 3) - 1);
    }
  }
  static float scale(const Block& b, int, int) { return f16_to_f32(b.d); }
};

void encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockQ2_0*>(blocks);
  for (int64_t start = 0; start < n; start += kBlockQ2_0, ++block) {
    const FitWide<kBlockQ2_0> fit = fit_scale64(values + start, importance_at(importance, start), IntegerGrid{-1, 2});
    *block = {};
    block->d = fit.d;
    for (int i = 0; i < kBlockQ2_0; ++i) block->qs[i / 4] |= static_cast<uint8_t>(fit.code[i] << (2 * (i % 4)));
  }
}

}  // namespace

extern const TypeTraits kTypeQ2_0;
constinit const TypeTraits kTypeQ2_0 = {DataType::kQ2_0,
                                        "Q2_0",
                                        kBlockQ2_0,
                                        sizeof(Format::Block),
                                        true,
                                        ActivationFormat::kInt8Per32,
                                        dequantize_parts<Format>,
                                        encode_alike<encode>,
                                        dot_parts<Format>,
                                        encode};

}  // namespace infer
