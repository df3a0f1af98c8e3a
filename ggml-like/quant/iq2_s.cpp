// IQ2_S: a codebook of 1024 times 8 magnitudes, eight signs per 8 values; 16 sub-blocks of 16 with 4-bit scales.
#include "ggml-like/data_type.h"
#include "ggml-like/quant/codebooks_data.h"
#include "ggml-like/quant/fit_codebook.h"
#include "ggml-like/quant/scalar.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockIQ2_S;
  static constexpr int kSub = 16;
  static constexpr bool kHasMin = false;
  static void unpack(const Block& b, Unpacked256& u) {
    for (int s = 0; s < 16; ++s) u.scale[s] = odd_scale(b.scales, s);
    for (int g = 0; g < 32; ++g) {
      const int index = b.qs[g] | (b.qh[g / 4] >> (2 * (g % 4)) & 3) << 8;
      unpack_signed(kIQ2SGrid[index], b.signs[g], u.code + 8 * g);
    }
  }
  static float scale(const Block& b) { return f16_to_f32(b.d) * 0.125f; }
};

const CodebookFormat& format() {
  static const Codebook book(kIQ2SGrid, {8, 25, 43});
  static const CodebookFormat format = {book, 16, 15, 0.125f, Signs::kFree};
  return format;
}

void encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockIQ2_S*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock256, ++block) {
    const CodebookFit fit = fit_codebook(values + start, importance_at(importance, start), format());
    *block = {};
    block->d = fit.d;
    for (int g = 0; g < 32; ++g) {
      block->qs[g] = static_cast<uint8_t>(fit.entry[g]);
      block->qh[g / 4] |= static_cast<uint8_t>(fit.entry[g] >> 8 << (2 * (g % 4)));
      block->signs[g] = fit.signs[g];
    }
    for (int s = 0; s < 16; ++s) block->scales[s / 2] |= static_cast<uint8_t>(fit.scale[s] << (4 * (s % 2)));
  }
}

}  // namespace

extern const TypeTraits kTypeIQ2_S;
constinit const TypeTraits kTypeIQ2_S = {DataType::kIQ2_S,
                                         "IQ2_S",
                                         256,
                                         sizeof(Format::Block),
                                         true,
                                         ActivationFormat::kInt8Per256,
                                         dequantize256<Format>,
                                         encode_alike<encode>,
                                         dot256<Format>,
                                         encode};

}  // namespace infer
