// Q4_1: 4 bits, a scale and an offset per 32.
#include "ggml-like/quant/fit.h"
#include "ggml-like/quant/formats.h"
#include "ggml-like/quant/scalar.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockQ4_1;
  static constexpr bool kHasMin = true;
  static void unpack(const Block& b, Unpacked32& u) {
    for (int i = 0; i < kBlock32; ++i) u.code[i] = static_cast<int8_t>(nibble32(b.qs, i));
  }
  static float scale(const Block& b) { return f16_to_f32(b.d); }
  static float min(const Block& b) { return f16_to_f32(b.m); }
};

}  // namespace

void q4_1_to_float(const void* blocks, float* values, int64_t n) { dequantize32<Format>(blocks, values, n); }

void q4_1_from_float(const float* values, void* blocks, int64_t n) { q4_1_encode(values, nullptr, blocks, n); }

void q4_1_encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockQ4_1*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock32, ++block) {
    BlockQ4_1& b = *block;
    const Fit32 fit = fit_min32(values + start, importance_at(importance, start), 15);
    b.d = fit.d;
    b.m = fit.m;
    pack_nibbles32(fit.code, b.qs);
  }
}

float q4_1_dot(const void* blocks, const void* activations, int64_t n) { return dot32<Format>(blocks, activations, n); }

}  // namespace infer
