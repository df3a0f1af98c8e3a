// TQ1_0: five ternary values in a byte and a scale per 256.
#include "ggml-like/data_type.h"
#include "ggml-like/quant/fit.h"
#include "ggml-like/quant/scalar.h"

namespace infer {
namespace {

constexpr int kPowers[6] = {1, 3, 9, 27, 81, 243};

// Where value i is: digit `digit` of byte `byte`, counted through qs and qh.
struct Place {
  int byte, digit;
};
constexpr Place place(int i) {
  if (i < 160) return {i % 32, i / 32};
  if (i < 240) return {32 + (i - 160) % 16, (i - 160) / 16};
  return {48 + (i - 240) % 4, (i - 240) / 4};
}

struct Format {
  using Block = BlockTQ1_0;
  static constexpr int kSub = 32;
  static constexpr bool kHasMin = false;
  static void unpack(const Block& b, Unpacked256& u) {
    for (int s = 0; s < 8; ++s) u.scale[s] = 1;
    for (int i = 0; i < kBlock256; ++i) {
      const auto [byte, digit] = place(i);
      const int packed = byte < 48 ? b.qs[byte] : b.qh[byte - 48];
      u.code[i] = static_cast<int8_t>((packed * kPowers[digit] % 256 * 3 >> 8) - 1);
    }
  }
  static float scale(const Block& b) { return f16_to_f32(b.d); }
};

void encode(const float* values, const float* importance, void* blocks, int64_t n) {
  auto* block = static_cast<BlockTQ1_0*>(blocks);
  for (int64_t start = 0; start < n; start += kBlock256, ++block) {
    const FitWide<kBlock256> fit = fit_ternary256(values + start, importance_at(importance, start));
    block->d = fit.d;
    int digits[52] = {};
    for (int i = 0; i < kBlock256; ++i) {
      const auto [byte, digit] = place(i);
      digits[byte] += fit.code[i] * kPowers[4 - digit];
    }
    const auto fraction = [&](int k) { return static_cast<uint8_t>((digits[k] * 256 + kPowers[5] - 1) / kPowers[5]); };
    for (int k = 0; k < 48; ++k) block->qs[k] = fraction(k);
    for (int k = 0; k < 4; ++k) block->qh[k] = fraction(48 + k);
  }
}

}  // namespace

extern const TypeTraits kTypeTQ1_0;
constinit const TypeTraits kTypeTQ1_0 = {DataType::kTQ1_0,
                                         "TQ1_0",
                                         256,
                                         sizeof(Format::Block),
                                         true,
                                         ActivationFormat::kInt8Per256,
                                         dequantize256<Format>,
                                         encode_alike<encode>,
                                         dot256<Format>,
                                         encode};

}  // namespace infer
