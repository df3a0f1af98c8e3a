// IQ4_XS: 4-bit index into a fixed table; 8 sub-blocks of 32 with signed 6-bit scales.
#include "ggml-like/data_type.h"
#include "ggml-like/quant/fit.h"
#include "ggml-like/quant/scalar.h"
#include "ggml-like/quant/tables.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockIQ4_XS;
  static constexpr int kSub = 32;
  static constexpr bool kHasMin = false;
  static void unpack(const Block& b, Unpacked256& u) {
    for (int s = 0; s < 8; ++s) {
      const int low = (b.scales_l[s / 2] >> (4 * (s % 2))) & 15;
      const int high = (b.scales_h >> (2 * s)) & 3;
      u.scale[s] = static_cast<int16_t>((low | high << 4) - 32);
    }
    for (int i = 0; i < kBlock256; ++i) {
      u.code[i] = kIQ4NLValues[(b.qs[16 * (i / 32) + i % 16] >> (4 * (i / 16 % 2))) & 15];
    }
  }
  static float scale(const Block& b) { return f16_to_f32(b.d); }
};

void encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockIQ4_XS*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock256, ++block) {
    BlockIQ4_XS& b = *block;
    const Fit256 fit = fit_scale256_sub32(values + start, importance_at(importance, start), IQ4NLGrid{}, -32, 31);
    b = {};
    b.d = fit.d;
    for (int s = 0; s < 8; ++s) {
      const int stored = fit.scale[s] + 32;
      b.scales_l[s / 2] |= static_cast<uint8_t>((stored & 15) << (4 * (s % 2)));
      b.scales_h |= static_cast<uint16_t>(stored >> 4 << (2 * s));
    }
    for (int i = 0; i < kBlock256; ++i) {
      b.qs[16 * (i / 32) + i % 16] |= static_cast<uint8_t>(fit.code[i] << (4 * (i / 16 % 2)));
    }
  }
}

}  // namespace

extern const TypeTraits kTypeIQ4_XS;
constinit const TypeTraits kTypeIQ4_XS = {DataType::kIQ4_XS,
                                          "IQ4_XS",
                                          256,
                                          sizeof(Format::Block),
                                          true,
                                          ActivationFormat::kInt8Per256,
                                          dequantize256<Format>,
                                          encode_alike<encode>,
                                          dot256<Format>,
                                          encode};

}  // namespace infer
