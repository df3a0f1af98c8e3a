// Q2_K: 2 bits; 16 sub-blocks of 16 with 4-bit scales and minima.
#include "ggml-like/data_type.h"
#include "ggml-like/quant/fit.h"
#include "ggml-like/quant/scalar.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockQ2_K;
  static constexpr int kSub = 16;
  static constexpr bool kHasMin = true;
  static void unpack(const Block& b, Unpacked256& u) {
    for (int s = 0; s < 16; ++s) {
      u.scale[s] = b.scales[s] & 15;
      u.min[s] = b.scales[s] >> 4;
    }
    for (int i = 0; i < kBlock256; ++i) {
      u.code[i] = static_cast<int8_t>((b.qs[32 * (i / 128) + i % 32] >> (2 * (i / 32 % 4))) & 3);
    }
  }
  static float scale(const Block& b) { return f16_to_f32(b.d); }
  static float min(const Block& b) { return f16_to_f32(b.dmin); }
};

void encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockQ2_K*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock256, ++block) {
    BlockQ2_K& b = *block;
    const Fit256 fit = fit_min256_sub16(values + start, importance_at(importance, start), 3, 15);
    b = {};
    b.d = fit.d;
    b.dmin = fit.dmin;
    for (int s = 0; s < 16; ++s) b.scales[s] = static_cast<uint8_t>(fit.scale[s] | fit.min[s] << 4);
    for (int i = 0; i < kBlock256; ++i) {
      b.qs[32 * (i / 128) + i % 32] |= static_cast<uint8_t>(fit.code[i] << (2 * (i / 32 % 4)));
    }
  }
}

}  // namespace

extern const TypeTraits kTypeQ2_K;
constinit const TypeTraits kTypeQ2_K = {DataType::kQ2_K,
                                        "Q2_K",
                                        256,
                                        sizeof(Format::Block),
                                        true,
                                        ActivationFormat::kInt8Per256,
                                        dequantize256<Format>,
                                        encode_alike<encode>,
                                        dot256<Format>,
                                        encode};

}  // namespace infer
