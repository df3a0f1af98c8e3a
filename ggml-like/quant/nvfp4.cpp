// NVFP4: 4-bit floats (E2M1) and an 8-bit float (E4M3) per 16. Models have an F32 factor per matrix beside it.
#include <algorithm>
#include <cmath>

#include "ggml-like/data_type.h"
#include "ggml-like/quant/e2m1.h"
#include "ggml-like/quant/fit.h"
#include "ggml-like/quant/scalar.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockNVFP4;
  static constexpr int kParts = kBlockNVFP4 / kBlock32;
  static constexpr int kSub = 16;
  static void unpack(const Block& b, int part, Unpacked32& u) {
    for (int i = 0; i < kBlock32; ++i) {
      u.code[i] = kMXFP4Values[b.qs[16 * part + 8 * (i / 16) + i % 8] >> (4 * (i / 8 % 2)) & 15];
    }
  }
  static float scale(const Block& b, int part, int s) { return ue4m3_to_f32_half(b.d[2 * part + s]); }
};

constexpr int kSub = Format::kSub;
constexpr int kLargestScale = 0x7e;  // 448; the next code is read as zero

// Chooses among the scales around the one that puts the largest value on the largest code, 12. The format has no NaN
// and no infinity, so non-finite values become the largest finite ones.
uint8_t encode_sub_block(const float* values, const float* importance, uint8_t* code) {
  float x[kSub], largest = 0;
  for (int i = 0; i < kSub; ++i) {
    x[i] = std::isfinite(values[i]) ? values[i] : std::copysign(1e30f, values[i]);
    largest = std::max(largest, std::abs(x[i]));
  }
  int nearest = 0;
  while (nearest < kLargestScale && 12 * ue4m3_to_f32_half(static_cast<uint8_t>(nearest)) < largest) ++nearest;
  uint8_t best = 0;
  double least = INFINITY;
  for (int s = std::max(nearest - 3, 0); s <= std::min(nearest + 2, kLargestScale); ++s) {
    uint8_t tried[kSub] = {};
    const double d = ue4m3_to_f32_half(static_cast<uint8_t>(s));
    double error = 0;
    if (d > 0) error = encode_e2m1(x, importance, kSub, d, tried);
    else
      for (int i = 0; i < kSub; ++i) error += double{x[i]} * x[i] * (importance ? importance[i] : 1);
    if (!(error < least)) continue;
    least = error;
    best = static_cast<uint8_t>(s);
    std::copy_n(tried, kSub, code);
  }
  return best;
}

void encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockNVFP4*>(blocks);
  for (int64_t start = 0; start < n; start += kBlockNVFP4, ++block) {
    for (int s = 0; s < kBlockNVFP4 / kSub; ++s) {
      uint8_t code[kSub] = {};
      block->d[s] = encode_sub_block(values + start + kSub * s, importance_at(importance, start + kSub * s), code);
      for (int i = 0; i < 8; ++i) block->qs[8 * s + i] = static_cast<uint8_t>(code[i] | code[i + 8] << 4);
    }
  }
}

}  // namespace

extern const TypeTraits kTypeNVFP4;
constinit const TypeTraits kTypeNVFP4 = {DataType::kNVFP4,
                                         "NVFP4",
                                         kBlockNVFP4,
                                         sizeof(Format::Block),
                                         true,
                                         ActivationFormat::kInt8Per32,
                                         dequantize_parts<Format>,
                                         encode_alike<encode>,
                                         dot_parts<Format>,
                                         encode};

}  // namespace infer
