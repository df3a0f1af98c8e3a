// IQ2_XS: a codebook of 512 times 8 magnitudes, seven signs per 8 values; 16 sub-blocks of 16 with 4-bit scales.
#include "ggml-like/data_type.h"
#include "ggml-like/quant/codebooks_data.h"
#include "ggml-like/quant/fit_codebook.h"
#include "ggml-like/quant/scalar.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockIQ2_XS;
  static constexpr int kSub = 16;
  static constexpr bool kHasMin = false;
  static void unpack(const Block& b, Unpacked256& u) {
    for (int s = 0; s < 16; ++s) u.scale[s] = odd_scale(b.scales, s);
    for (int g = 0; g < 32; ++g) unpack_signed(kIQ2XSGrid[b.qs[g] & 511], even_signs(b.qs[g] >> 9), u.code + 8 * g);
  }
  static float scale(const Block& b) { return f16_to_f32(b.d) * 0.125f; }
};

const CodebookFormat& format() {
  static const Codebook book(kIQ2XSGrid, {8, 25, 43});
  static const CodebookFormat format = {book, 16, 15, 0.125f, Signs::kEven};
  return format;
}

void encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockIQ2_XS*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock256, ++block) {
    const CodebookFit fit = fit_codebook(values + start, importance_at(importance, start), format());
    *block = {};
    block->d = fit.d;
    for (int g = 0; g < 32; ++g) block->qs[g] = static_cast<uint16_t>(fit.entry[g] | (fit.signs[g] & 127) << 9);
    for (int s = 0; s < 16; ++s) block->scales[s / 2] |= static_cast<uint8_t>(fit.scale[s] << (4 * (s % 2)));
  }
}

}  // namespace

extern const TypeTraits kTypeIQ2_XS;
constinit const TypeTraits kTypeIQ2_XS = {DataType::kIQ2_XS,
                                          "IQ2_XS",
                                          256,
                                          sizeof(Format::Block),
                                          true,
                                          ActivationFormat::kInt8Per256,
                                          dequantize256<Format>,
                                          encode_alike<encode>,
                                          dot256<Format>,
                                          encode};

}  // namespace infer
