// IQ1_M: a codebook of 2048 times 8 ternary values; 16 sub-blocks of 16 with a 3-bit scale; an offset of 1/8 or -1/8
// per 8 values.
#include "ggml-like/data_type.h"
#include "ggml-like/quant/codebooks_data.h"
#include "ggml-like/quant/fit_codebook.h"
#include "ggml-like/quant/scalar.h"

namespace infer {
namespace {

// The four pairs of bytes in `scales` as numbers.
uint32_t word(const BlockIQ1_M& b, int j) { return b.scales[2 * j] | uint32_t{b.scales[2 * j + 1]} << 8; }

struct Format {
  using Block = BlockIQ1_M;
  static constexpr int kSub = 16;
  static constexpr bool kHasMin = false;
  static void unpack(const Block& b, Unpacked256& u) {
    for (int s = 0; s < 16; ++s) u.scale[s] = static_cast<int16_t>(2 * (word(b, s / 4) >> (3 * (s % 4)) & 7) + 1);
    for (int g = 0; g < 32; ++g) {
      const int high = b.qh[g / 2] >> (4 * (g % 2));
      unpack_shifted(kIQ1Grid[b.qs[g] | (high & 7) << 8], high & 8, u.code + 8 * g);
    }
  }
  static float scale(const Block& b) {
    uint32_t d = 0;
    for (int j = 0; j < 4; ++j) d |= word(b, j) >> 12 << (4 * j);
    return f16_to_f32(static_cast<uint16_t>(d)) * 0.125f;
  }
};

const CodebookFormat& format() {
  static const Codebook book(kIQ1Grid, {0, 8, 16});
  static const CodebookFormat format = {book, 16, 7, 0.125f, Signs::kNone, 8};
  return format;
}

void encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockIQ1_M*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock256, ++block) {
    const CodebookFit fit = fit_codebook(values + start, importance_at(importance, start), format());
    *block = {};
    for (int g = 0; g < 32; ++g) {
      block->qs[g] = static_cast<uint8_t>(fit.entry[g]);
      block->qh[g / 2] |= static_cast<uint8_t>((fit.entry[g] >> 8 | fit.minus[g] << 3) << (4 * (g % 2)));
    }
    for (int j = 0; j < 4; ++j) {
      uint32_t packed = static_cast<uint32_t>(fit.d >> (4 * j) & 15) << 12;
      for (int k = 0; k < 4; ++k) packed |= static_cast<uint32_t>(fit.scale[4 * j + k]) << (3 * k);
      block->scales[2 * j] = static_cast<uint8_t>(packed);
      block->scales[2 * j + 1] = static_cast<uint8_t>(packed >> 8);
    }
  }
}

}  // namespace

extern const TypeTraits kTypeIQ1_M;
constinit const TypeTraits kTypeIQ1_M = {DataType::kIQ1_M,
                                         "IQ1_M",
                                         256,
                                         sizeof(Format::Block),
                                         true,
                                         ActivationFormat::kInt8Per256,
                                         dequantize256<Format>,
                                         encode_alike<encode>,
                                         dot256<Format>,
                                         encode};

}  // namespace infer
