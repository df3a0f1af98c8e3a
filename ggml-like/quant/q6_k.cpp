// Q6_K: 6 bits; 16 sub-blocks of 16 with 8-bit scales.
#include "ggml-like/data_type.h"
#include "ggml-like/quant/fit.h"
#include "ggml-like/quant/scalar.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockQ6_K;
  static constexpr int kSub = 16;
  static constexpr bool kHasMin = false;
  static void unpack(const Block& b, Unpacked256& u) {
    for (int s = 0; s < 16; ++s) u.scale[s] = b.scales[s];
    for (int i = 0; i < kBlock256; ++i) {
      const int low = (b.ql[64 * (i / 128) + i % 64] >> (4 * (i / 64 % 2))) & 15;
      const int high = (b.qh[32 * (i / 128) + i % 32] >> (2 * (i / 32 % 4))) & 3;
      u.code[i] = static_cast<int8_t>((low | high << 4) - 32);
    }
  }
  static float scale(const Block& b) { return f16_to_f32(b.d); }
};

void encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockQ6_K*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock256, ++block) {
    BlockQ6_K& b = *block;
    const Fit256 fit =
        fit_scale256_sub16(values + start, importance_at(importance, start), IntegerGrid{-32, 31}, -128, 127);
    b = {};
    b.d = fit.d;
    for (int s = 0; s < 16; ++s) b.scales[s] = static_cast<int8_t>(fit.scale[s]);
    for (int i = 0; i < kBlock256; ++i) {
      b.ql[64 * (i / 128) + i % 64] |= static_cast<uint8_t>((fit.code[i] & 15) << (4 * (i / 64 % 2)));
      b.qh[32 * (i / 128) + i % 32] |= static_cast<uint8_t>(fit.code[i] >> 4 << (2 * (i / 32 % 4)));
    }
  }
}

}  // namespace

extern const TypeTraits kTypeQ6_K;
constinit const TypeTraits kTypeQ6_K = {DataType::kQ6_K,
                                        "Q6_K",
                                        256,
                                        sizeof(Format::Block),
                                        true,
                                        ActivationFormat::kInt8Per256,
                                        dequantize256<Format>,
                                        encode_alike<encode>,
                                        dot256<Format>,
                                        encode};

}  // namespace infer
