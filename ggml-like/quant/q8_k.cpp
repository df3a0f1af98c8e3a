// Q8_K: 8 bits and an F32 scale per 256, with sums. Other programs' activation format; supported for files that contain
// it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ggml-like/data_type.h"
#include "ggml-like/quant/blocks.h"
#include "ggml-like/quant/fit.h"
#include "ggml-like/quant/rounding.h"

namespace infer {
namespace {

void to_float(const void* blocks, float* values, int64_t n) {
  const auto* block = static_cast<const BlockQ8_K*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock256, ++block) {
    for (int i = 0; i < kBlock256; ++i) values[start + i] = block->d * static_cast<float>(block->qs[i]);
  }
}

void from_float(const float* values, void* blocks, int64_t n) {
  auto* block = static_cast<BlockQ8_K*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock256, ++block) {
    const float* x = values + start;
    *block = {};
    if (!all_finite(x, kBlock256)) {
      block->d = std::numeric_limits<float>::quiet_NaN();
      continue;
    }
    float largest = 0;
    for (int i = 0; i < kBlock256; ++i) largest = std::max(largest, std::abs(x[i]));
    block->d = largest / 127.0f;
    // The quotient may be rounded up, but 127 * d must stay finite.
    if (!std::isfinite(127.0f * block->d)) block->d = std::nextafter(block->d, 0.0f);
    if (block->d == 0) continue;
    for (int i = 0; i < kBlock256; ++i) {
      const double q = std::clamp(x[i] / static_cast<double>(block->d), -127.0, 127.0);
      block->qs[i] = static_cast<int8_t>(round_even(q));
      block->bsums[i / 16] = static_cast<int16_t>(block->bsums[i / 16] + block->qs[i]);
    }
  }
}

}  // namespace

extern const TypeTraits kTypeQ8_K;
constinit const TypeTraits kTypeQ8_K = {DataType::kQ8_K,         "Q8_K",   256,       sizeof(BlockQ8_K), true,
                                        ActivationFormat::kNone, to_float, from_float};

}  // namespace infer
