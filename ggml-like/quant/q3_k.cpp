// Q3_K: 3 bits; 16 sub-blocks of 16 with signed 6-bit scales.
#include "ggml-like/data_type.h"
#include "ggml-like/quant/fit.h"
#include "ggml-like/quant/scalar.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockQ3_K;
  static constexpr int kSub = 16;
  static constexpr bool kHasMin = false;
  static void unpack(const Block& b, Unpacked256& u) {
    for (int s = 0; s < 16; ++s) {
      const int low = (b.scales[s % 8] >> (4 * (s / 8))) & 15;
      const int high = (b.scales[8 + s % 4] >> (2 * (s / 4))) & 3;
      u.scale[s] = static_cast<int16_t>((low | high << 4) - 32);
    }
    for (int i = 0; i < kBlock256; ++i) {
      const int low = (b.qs[32 * (i / 128) + i % 32] >> (2 * (i / 32 % 4))) & 3;
      const int high = (b.hmask[i % 32] >> (i / 32)) & 1;
      u.code[i] = static_cast<int8_t>((low | high << 2) - 4);
    }
  }
  static float scale(const Block& b) { return f16_to_f32(b.d); }
};

void encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockQ3_K*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock256, ++block) {
    BlockQ3_K& b = *block;
    const Fit256 fit =
        fit_scale256_sub16(values + start, importance_at(importance, start), IntegerGrid{-4, 3}, -32, 31);
    b = {};
    b.d = fit.d;
    for (int s = 0; s < 16; ++s) {
      const int stored = fit.scale[s] + 32;
      b.scales[s % 8] |= static_cast<uint8_t>((stored & 15) << (4 * (s / 8)));
      b.scales[8 + s % 4] |= static_cast<uint8_t>(stored >> 4 << (2 * (s / 4)));
    }
    for (int i = 0; i < kBlock256; ++i) {
      b.qs[32 * (i / 128) + i % 32] |= static_cast<uint8_t>((fit.code[i] & 3) << (2 * (i / 32 % 4)));
      b.hmask[i % 32] |= static_cast<uint8_t>(fit.code[i] >> 2 << (i / 32));
    }
  }
}

}  // namespace

extern const TypeTraits kTypeQ3_K;
constinit const TypeTraits kTypeQ3_K = {DataType::kQ3_K,
                                        "Q3_K",
                                        256,
                                        sizeof(Format::Block),
                                        true,
                                        ActivationFormat::kInt8Per256,
                                        dequantize256<Format>,
                                        encode_alike<encode>,
                                        dot256<Format>,
                                        encode};

}  // namespace infer
