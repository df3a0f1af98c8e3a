// Q8_0: 8 bits and a scale per 32.
#include <algorithm>

#include "ggml-like/quant/fit.h"
#include "ggml-like/quant/formats.h"
#include "ggml-like/quant/scalar.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockQ8_0;
  static constexpr bool kHasMin = false;
  static void unpack(const Block& b, Unpacked32& u) { std::copy_n(b.qs, kBlock32, u.code); }
  static float scale(const Block& b) { return f16_to_f32(b.d); }
};

}  // namespace

void q8_0_to_float(const void* blocks, float* values, int64_t n) { dequantize32<Format>(blocks, values, n); }

void q8_0_from_float(const float* values, void* blocks, int64_t n) { q8_0_encode(values, nullptr, blocks, n); }

void q8_0_encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockQ8_0*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock32, ++block) {
    block->d = fit_int8(values + start, importance_at(importance, start), 127, block->qs);
  }
}

float q8_0_dot(const void* blocks, const void* activations, int64_t n) { return dot32<Format>(blocks, activations, n); }

}  // namespace infer
