// IQ3_XXS: a codebook of 256 times 4 magnitudes, seven signs per 8 values; 8 sub-blocks of 32 with 4-bit scales.
#include "ggml-like/data_type.h"
#include "ggml-like/quant/codebooks_data.h"
#include "ggml-like/quant/fit_codebook.h"
#include "ggml-like/quant/scalar.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockIQ3_XXS;
  static constexpr int kSub = 32;
  static constexpr bool kHasMin = false;
  static void unpack(const Block& b, Unpacked256& u) {
    for (int s = 0; s < 8; ++s) {
      const uint32_t rest = load_bits32(b.signs_and_scales + 4 * s);
      u.scale[s] = static_cast<int16_t>(2 * (rest >> 28) + 1);
      for (int k = 0; k < 8; ++k) {
        const uint32_t signs = even_signs(rest >> (7 * (k / 2))) >> (4 * (k % 2));
        unpack_signed(kIQ3XXSGrid[b.qs[8 * s + k]], signs, u.code + 32 * s + 4 * k);
      }
    }
  }
  static float scale(const Block& b) { return f16_to_f32(b.d) * 0.25f; }
};

const CodebookFormat& format() {
  static const Codebook book(kIQ3XXSGrid, {4, 12, 20, 28, 36, 44, 52, 62});
  static const CodebookFormat format = {book, 32, 15, 0.25f, Signs::kEven};
  return format;
}

void encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockIQ3_XXS*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock256, ++block) {
    const CodebookFit fit = fit_codebook(values + start, importance_at(importance, start), format());
    *block = {};
    block->d = fit.d;
    for (int i = 0; i < 64; ++i) block->qs[i] = static_cast<uint8_t>(fit.entry[i]);
    for (int s = 0; s < 8; ++s) {
      uint32_t rest = static_cast<uint32_t>(fit.scale[s]) << 28;
      for (int k = 0; k < 4; ++k) rest |= (fit.signs[4 * s + k] & 127u) << (7 * k);
      store_bits32(rest, block->signs_and_scales + 4 * s);
    }
  }
}

}  // namespace

extern const TypeTraits kTypeIQ3_XXS;
constinit const TypeTraits kTypeIQ3_XXS = {DataType::kIQ3_XXS,
                                           "IQ3_XXS",
                                           256,
                                           sizeof(Format::Block),
                                           true,
                                           ActivationFormat::kInt8Per256,
                                           dequantize256<Format>,
                                           encode_alike<encode>,
                                           dot256<Format>,
                                           encode};

}  // namespace infer
