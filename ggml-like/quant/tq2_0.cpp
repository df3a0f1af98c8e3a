// TQ2_0: ternary values in 2 bits and a scale per 256.
#include "ggml-like/data_type.h"
#include "ggml-like/quant/fit.h"
#include "ggml-like/quant/scalar.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockTQ2_0;
  static constexpr int kSub = 32;
  static constexpr bool kHasMin = false;
  static void unpack(const Block& b, Unpacked256& u) {
    for (int s = 0; s < 8; ++s) u.scale[s] = 1;
    for (int i = 0; i < kBlock256; ++i) {
      u.code[i] = static_cast<int8_t>((b.qs[32 * (i / 128) + i % 32] >> (2 * (i / 32 % 4)) & 3) - 1);
    }
  }
  static float scale(const Block& b) { return f16_to_f32(b.d); }
};

void encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockTQ2_0*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock256, ++block) {
    const FitWide<kBlock256> fit = fit_ternary256(values + start, importance_at(importance, start));
    *block = {};
    block->d = fit.d;
    for (int i = 0; i < kBlock256; ++i) {
      block->qs[32 * (i / 128) + i % 32] |= static_cast<uint8_t>(fit.code[i] << (2 * (i / 32 % 4)));
    }
  }
}

}  // namespace

extern const TypeTraits kTypeTQ2_0;
constinit const TypeTraits kTypeTQ2_0 = {DataType::kTQ2_0,
                                         "TQ2_0",
                                         256,
                                         sizeof(Format::Block),
                                         true,
                                         ActivationFormat::kInt8Per256,
                                         dequantize256<Format>,
                                         encode_alike<encode>,
                                         dot256<Format>,
                                         encode};

}  // namespace infer
