// IQ2_XXS: a codebook of 256 times 8 magnitudes, seven signs per 8 values; 8 sub-blocks of 32 with 4-bit scales.
#include "ggml-like/data_type.h"
#include "ggml-like/quant/codebooks_data.h"
#include "ggml-like/quant/fit_codebook.h"
#include "ggml-like/quant/scalar.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockIQ2_XXS;
  static constexpr int kSub = 32;
  static constexpr bool kHasMin = false;
  static void unpack(const Block& b, Unpacked256& u) {
    for (int s = 0; s < 8; ++s) {
      const uint32_t rest = b.qs[4 * s + 2] | uint32_t{b.qs[4 * s + 3]} << 16;
      u.scale[s] = static_cast<int16_t>(2 * (rest >> 28) + 1);
      for (int k = 0; k < 4; ++k) {
        const int index = b.qs[4 * s + k / 2] >> (8 * (k % 2)) & 255;
        unpack_signed(kIQ2XXSGrid[index], even_signs(rest >> (7 * k)), u.code + 32 * s + 8 * k);
      }
    }
  }
  static float scale(const Block& b) { return f16_to_f32(b.d) * 0.125f; }
};

const CodebookFormat& format() {
  static const Codebook book(kIQ2XXSGrid, {8, 25, 43});
  static const CodebookFormat format = {book, 32, 15, 0.125f, Signs::kEven};
  return format;
}

void encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockIQ2_XXS*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock256, ++block) {
    const CodebookFit fit = fit_codebook(values + start, importance_at(importance, start), format());
    *block = {};
    block->d = fit.d;
    for (int s = 0; s < 8; ++s) {
      uint32_t rest = static_cast<uint32_t>(fit.scale[s]) << 28;
      for (int k = 0; k < 4; ++k) {
        block->qs[4 * s + k / 2] |= static_cast<uint16_t>(fit.entry[4 * s + k] << (8 * (k % 2)));
        rest |= (fit.signs[4 * s + k] & 127u) << (7 * k);
      }
      block->qs[4 * s + 2] = static_cast<uint16_t>(rest);
      block->qs[4 * s + 3] = static_cast<uint16_t>(rest >> 16);
    }
  }
}

}  // namespace

extern const TypeTraits kTypeIQ2_XXS;
constinit const TypeTraits kTypeIQ2_XXS = {DataType::kIQ2_XXS,
                                           "IQ2_XXS",
                                           256,
                                           sizeof(Format::Block),
                                           true,
                                           ActivationFormat::kInt8Per256,
                                           dequantize256<Format>,
                                           encode_alike<encode>,
                                           dot256<Format>,
                                           encode};

}  // namespace infer
