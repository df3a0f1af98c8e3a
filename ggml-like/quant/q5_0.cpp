// Q5_0: 5 bits and a scale per 32.
#include "ggml-like/quant/fit.h"
#include "ggml-like/quant/formats.h"
#include "ggml-like/quant/scalar.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockQ5_0;
  static constexpr bool kHasMin = false;
  static void unpack(const Block& b, Unpacked32& u) {
    const uint32_t high = load_bits32(b.qh);
    for (int i = 0; i < kBlock32; ++i) {
      u.code[i] = static_cast<int8_t>((nibble32(b.qs, i) | ((high >> i) & 1) << 4) - 16);
    }
  }
  static float scale(const Block& b) { return f16_to_f32(b.d); }
};

}  // namespace

void q5_0_to_float(const void* blocks, float* values, int64_t n) { dequantize32<Format>(blocks, values, n); }

void q5_0_from_float(const float* values, void* blocks, int64_t n) { q5_0_encode(values, nullptr, blocks, n); }

void q5_0_encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockQ5_0*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock32, ++block) {
    BlockQ5_0& b = *block;
    const Fit32 fit = fit_scale32(values + start, importance_at(importance, start), IntegerGrid{-16, 15});
    b.d = fit.d;
    uint32_t high = 0;
    for (int i = 0; i < kBlock32; ++i) high |= static_cast<uint32_t>(fit.code[i] >> 4) << i;
    store_bits32(high, b.qh);
    pack_nibbles32(fit.code, b.qs);
  }
}

float q5_0_dot(const void* blocks, const void* activations, int64_t n) { return dot32<Format>(blocks, activations, n); }

}  // namespace infer
