// IQ1_S: a codebook of 2048 times 8 ternary values; 8 sub-blocks of 32 with a 3-bit scale and an offset of 1/8 or -1/8.
#include "ggml-like/data_type.h"
#include "ggml-like/quant/codebooks_data.h"
#include "ggml-like/quant/fit_codebook.h"
#include "ggml-like/quant/scalar.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockIQ1_S;
  static constexpr int kSub = 32;
  static constexpr bool kHasMin = false;
  static void unpack(const Block& b, Unpacked256& u) {
    for (int s = 0; s < 8; ++s) u.scale[s] = static_cast<int16_t>(2 * (b.qh[s] >> 12 & 7) + 1);
    for (int g = 0; g < 32; ++g) {
      const int index = b.qs[g] | (b.qh[g / 4] >> (3 * (g % 4)) & 7) << 8;
      unpack_shifted(kIQ1Grid[index], b.qh[g / 4] & 0x8000, u.code + 8 * g);
    }
  }
  static float scale(const Block& b) { return f16_to_f32(b.d) * 0.125f; }
};

const CodebookFormat& format() {
  static const Codebook book(kIQ1Grid, {0, 8, 16});
  static const CodebookFormat format = {book, 32, 7, 0.125f, Signs::kNone, 32};
  return format;
}

void encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockIQ1_S*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock256, ++block) {
    const CodebookFit fit = fit_codebook(values + start, importance_at(importance, start), format());
    *block = {};
    block->d = fit.d;
    for (int g = 0; g < 32; ++g) {
      block->qs[g] = static_cast<uint8_t>(fit.entry[g]);
      block->qh[g / 4] |= static_cast<uint16_t>(fit.entry[g] >> 8 << (3 * (g % 4)));
    }
    for (int s = 0; s < 8; ++s) block->qh[s] |= static_cast<uint16_t>(fit.scale[s] << 12 | fit.minus[4 * s] << 15);
  }
}

}  // namespace

extern const TypeTraits kTypeIQ1_S;
constinit const TypeTraits kTypeIQ1_S = {DataType::kIQ1_S,
                                         "IQ1_S",
                                         256,
                                         sizeof(Format::Block),
                                         true,
                                         ActivationFormat::kInt8Per256,
                                         dequantize256<Format>,
                                         encode_alike<encode>,
                                         dot256<Format>,
                                         encode};

}  // namespace infer
