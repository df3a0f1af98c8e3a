// Q1_0: a sign per value and a scale per 128.
#include <cmath>

#include "ggml-like/data_type.h"
#include "ggml-like/quant/fit.h"
#include "ggml-like/quant/scalar.h"

namespace infer {
namespace {

struct Format {
  using Block = BlockQ1_0;
  static constexpr int kParts = kBlockQ1_0 / kBlock32;
  static constexpr int kSub = 32;
  static void unpack(const Block& b, int part, Unpacked32& u) {
    const uint32_t bits = load_bits32(b.qs + 4 * part);
    for (int i = 0; i < kBlock32; ++i) u.code[i] = static_cast<int8_t>(bits >> i & 1 ? 1 : -1);
  }
  static float scale(const Block& b, int, int) { return f16_to_f32(b.d); }
};

// For given signs, the weighted mean of the magnitudes has the smallest error.
void encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockQ1_0*>(blocks);
  for (int64_t start = 0; start < n; start += kBlockQ1_0, ++block) {
    const float* x = values + start;
    const float* weights = importance_at(importance, start);
    *block = {};
    double sum = 0, total = 0, plain = 0;
    for (int i = 0; i < kBlockQ1_0; ++i) {
      if (x[i] >= 0) block->qs[i / 8] |= static_cast<uint8_t>(1 << (i % 8));
      const double weight = weights ? weights[i] : 1;
      sum += weight * std::abs(x[i]);
      total += weight;
      plain += std::abs(x[i]);
    }
    const double mean = total > 0 ? sum / total : plain / kBlockQ1_0;
    block->d = all_finite(x, kBlockQ1_0) ? scale_to_f16(static_cast<float>(mean)) : kF16NaN;
  }
}

}  // namespace

extern const TypeTraits kTypeQ1_0;
constinit const TypeTraits kTypeQ1_0 = {DataType::kQ1_0,
                                        "Q1_0",
                                        kBlockQ1_0,
                                        sizeof(Format::Block),
                                        true,
                                        ActivationFormat::kInt8Per32,
                                        dequantize_parts<Format>,
                                        encode_alike<encode>,
                                        dot_parts<Format>,
                                        encode};

}  // namespace infer
