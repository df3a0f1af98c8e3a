// IQ3_S: a codebook of 512 times 4 magnitudes, eight signs per 8 values; 8 sub-blocks of 32 with 4-bit scales.
#include "ggml-like/data_type.h"
#include "ggml-like/quant/codebooks_data.h"
#include "ggml-like/quant/fit_codebook.h"
#include "ggml-like/quant/scalar.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockIQ3_S;
  static constexpr int kSub = 32;
  static constexpr bool kHasMin = false;
  static void unpack(const Block& b, Unpacked256& u) {
    for (int s = 0; s < 8; ++s) u.scale[s] = odd_scale(b.scales, s);
    for (int i = 0; i < 64; ++i) {
      const int index = b.qs[i] | (b.qh[i / 8] >> (i % 8) & 1) << 8;
      unpack_signed(kIQ3SGrid[index], b.signs[i / 2] >> (4 * (i % 2)), u.code + 4 * i);
    }
  }
  static float scale(const Block& b) { return f16_to_f32(b.d); }
};

const CodebookFormat& format() {
  static const Codebook book(kIQ3SGrid, {1, 3, 5, 7, 9, 11, 13, 15});
  static const CodebookFormat format = {book, 32, 15, 1, Signs::kFree};
  return format;
}

void encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockIQ3_S*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock256, ++block) {
    const CodebookFit fit = fit_codebook(values + start, importance_at(importance, start), format());
    *block = {};
    block->d = fit.d;
    for (int i = 0; i < 64; ++i) {
      block->qs[i] = static_cast<uint8_t>(fit.entry[i]);
      block->qh[i / 8] |= static_cast<uint8_t>(fit.entry[i] >> 8 << (i % 8));
    }
    for (int g = 0; g < 32; ++g) block->signs[g] = fit.signs[g];
    for (int s = 0; s < 8; ++s) block->scales[s / 2] |= static_cast<uint8_t>(fit.scale[s] << (4 * (s % 2)));
  }
}

}  // namespace

extern const TypeTraits kTypeIQ3_S;
constinit const TypeTraits kTypeIQ3_S = {DataType::kIQ3_S,
                                         "IQ3_S",
                                         256,
                                         sizeof(Format::Block),
                                         true,
                                         ActivationFormat::kInt8Per256,
                                         dequantize256<Format>,
                                         encode_alike<encode>,
                                         dot256<Format>,
                                         encode};

}  // namespace infer
