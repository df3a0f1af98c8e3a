// Q4_K: 4 bits; 8 sub-blocks of 32 with 6-bit scales and minima.
#include "ggml-like/data_type.h"
#include "ggml-like/quant/fit.h"
#include "ggml-like/quant/scalar.h"
#include "ggml-like/quant/scales6.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockQ4_K;
  static constexpr int kSub = 32;
  static constexpr bool kHasMin = true;
  static void unpack(const Block& b, Unpacked256& u) {
    unpack_scales6(b.scales, u.scale, u.min);
    for (int i = 0; i < kBlock256; ++i) {
      u.code[i] = static_cast<int8_t>((b.qs[32 * (i / 64) + i % 32] >> (4 * (i / 32 % 2))) & 15);
    }
  }
  static float scale(const Block& b) { return f16_to_f32(b.d); }
  static float min(const Block& b) { return f16_to_f32(b.dmin); }
};

void encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockQ4_K*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock256, ++block) {
    BlockQ4_K& b = *block;
    const Fit256 fit = fit_min256_sub32(values + start, importance_at(importance, start), 15, 63);
    b = {};
    b.d = fit.d;
    b.dmin = fit.dmin;
    pack_scales6(fit.scale, fit.min, b.scales);
    for (int i = 0; i < kBlock256; ++i) {
      b.qs[32 * (i / 64) + i % 32] |= static_cast<uint8_t>(fit.code[i] << (4 * (i / 32 % 2)));
    }
  }
}

}  // namespace

extern const TypeTraits kTypeQ4_K;
constinit const TypeTraits kTypeQ4_K = {DataType::kQ4_K,
                                        "Q4_K",
                                        256,
                                        sizeof(Format::Block),
                                        true,
                                        ActivationFormat::kInt8Per256,
                                        dequantize256<Format>,
                                        encode_alike<encode>,
                                        dot256<Format>,
                                        encode};

}  // namespace infer
