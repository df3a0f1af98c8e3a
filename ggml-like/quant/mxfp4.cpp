// MXFP4: 4-bit floats (E2M1) and a power of two per 32.
#include <algorithm>
#include <cmath>

#include "ggml-like/data_type.h"
#include "ggml-like/quant/e2m1.h"
#include "ggml-like/quant/fit.h"
#include "ggml-like/quant/scalar.h"
#include "ggml-like/quant/tables.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockMXFP4;
  static constexpr bool kHasMin = false;
  static void unpack(const Block& b, Unpacked32& u) {
    for (int i = 0; i < kBlock32; ++i) u.code[i] = kMXFP4Values[nibble32(b.qs, i)];
  }
  static float scale(const Block& b) { return e8m0_to_f32_half(b.e); }
};

// The largest exponent for which no code overflows F32.
constexpr int kLargestExponent = 252;

void encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockMXFP4*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock32, ++block) {
    const float* x = values + start;
    *block = {};
    if (!all_finite(x, kBlock32)) {
      // As read here, the format has no NaN; 12 * 2^127 is infinite.
      block->e = 255;
      std::fill_n(block->qs, 16, uint8_t{0x77});
      continue;
    }
    float largest = 0;
    for (int i = 0; i < kBlock32; ++i) largest = std::max(largest, std::abs(x[i]));
    if (largest == 0) continue;
    // 2^exponent <= largest. With e = 125 + exponent, the largest value falls in 4..8 (doubled: 8..16) and may be
    // clipped to 6; an exponent one higher avoids that but halves the resolution. The smaller error wins.
    const int exponent = std::ilogb(largest);
    const int first = std::clamp(exponent + 125, 0, kLargestExponent);
    const int second = std::min(first + 1, kLargestExponent);
    uint8_t code[2][32];
    const float* weights = importance_at(importance, start);
    const auto encode_with = [&](int e, uint8_t* codes) {
      return encode_e2m1(x, weights, kBlock32, e8m0_to_f32_half(static_cast<uint8_t>(e)), codes);
    };
    const double error[2] = {encode_with(first, code[0]), encode_with(second, code[1])};
    const int best = error[1] < error[0] ? 1 : 0;
    block->e = static_cast<uint8_t>(best ? second : first);
    pack_nibbles32(code[best], block->qs);
  }
}

}  // namespace

extern const TypeTraits kTypeMXFP4;
constinit const TypeTraits kTypeMXFP4 = {DataType::kMXFP4,
                                         "MXFP4",
                                         32,
                                         sizeof(Format::Block),
                                         true,
                                         ActivationFormat::kInt8Per32,
                                         dequantize32<Format>,
                                         encode_alike<encode>,
                                         dot32<Format>,
                                         encode};

}  // namespace infer
