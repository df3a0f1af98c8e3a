// Blocks of 32.
#include "ggml-like/quant/fit.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "ggml-like/half.h"
#include "ggml-like/quant/fit_search.h"

namespace infer {
namespace {

using namespace fit;

// Chosen by measurement: more factors, or closer ones, lower the error by less than 1 %.
constexpr float kScaleFactors[] = {0.72f, 0.76f, 0.80f, 0.84f, 0.88f, 0.91f, 0.94f,
                                   0.97f, 1.0f,  1.03f, 1.06f, 1.10f, 1.14f};
constexpr float kAffineFactors[] = {0.92f, 0.95f, 0.97f, 0.99f, 1.01f, 1.03f, 1.05f, 1.08f, 1.11f, 1.15f, 1.20f};

// Handles a block without data to fit; returns false if there is data.
template <typename Fit>
bool is_special(Loaded loaded, Fit& fit) {
  if (loaded == Loaded::kNotFinite) fit.d = kF16NaN;
  return loaded != Loaded::kValues;
}

template <bool kWeighted, typename Grid>
void search_scale(const Values<32>& v, const Grid& grid, Fit32& fit) {
  constexpr Candidates kCandidates{kScaleFactors, static_cast<int>(std::size(kScaleFactors))};
  const Part<32, kWeighted> part(v, 0);
  const float scale = v.from_f16(v.to_f16(best_scale(part, grid, kCandidates)));
  const Projection projection = write_codes(part, scale, grid, fit.code);
  fit.d = v.to_f16(scale * projection.factor(kShareReturned));
}

template <typename Grid>
Fit32 fit_scale(const float* x, const float* importance, const Grid& grid) {
  Fit32 fit{};
  Values<32> v;
  if (is_special(load(x, importance, v), fit)) {
    std::fill_n(fit.code, 32, grid.zero());
    return fit;
  }
  v.weighted ? search_scale<true>(v, grid, fit) : search_scale<false>(v, grid, fit);
  return fit;
}

template <bool kWeighted>
void search_affine(const Values<32>& v, float max_code, Fit32& fit) {
  constexpr Candidates kCandidates{kAffineFactors, static_cast<int>(std::size(kAffineFactors))};
  const Part<32, kWeighted> part(v, 0);
  const Affine best = best_affine(part, max_code, Offset::kAny, kCandidates);
  const Affine stored{v.from_f16(v.to_f16(best.scale)), v.from_f16(v.to_f16(best.offset))};
  const float factor = write_codes(part, stored, max_code, fit.code).factor(kShareReturned);
  fit.d = v.to_f16(stored.scale * factor);
  fit.m = v.to_f16(stored.offset * factor);
}

}  // namespace

bool all_finite(const float* x, int n) {
  return std::all_of(x, x + n, [](float v) { return std::isfinite(v); });
}

uint16_t scale_to_f16(float scale) {
  constexpr float kLargest = 65504;
  return f32_to_f16(std::clamp(scale, -kLargest, kLargest));
}

Fit32 fit_scale32(const float* x, const float* importance, IntegerGrid grid) {
  return fit_scale(x, importance, Integers(grid));
}

Fit32 fit_scale32(const float* x, const float* importance, IQ4NLGrid grid) {
  return fit_scale(x, importance, IQ4NL(grid));
}

Fit32 fit_min32(const float* x, const float* importance, int max_code) {
  Fit32 fit{};
  Values<32> v;
  if (is_special(load(x, importance, v), fit)) return fit;
  const float top = static_cast<float>(max_code);
  v.weighted ? search_affine<true>(v, top, fit) : search_affine<false>(v, top, fit);
  return fit;
}

namespace {

// Of nearly 256 steps only the last few are worth searching: the rounding errors of 32 values vary randomly between
// candidates, so the best of a handful is several percent better than the first.
constexpr float kBelowLargestCode[] = {0.0f, 0.7f, 1.4f};
constexpr int kTried = static_cast<int>(std::size(kBelowLargestCode));

template <bool kWeighted>
uint16_t search_int8(const Values<32>& v, float largest_code, int8_t code[32]) {
  const Part<32, kWeighted> part(v, 0);
  const Lanes low = all_lanes(-largest_code), high = all_lanes(largest_code);
  uint16_t d[kTried];
  float scale[kTried], inverse_scale[kTried];
  for (int k = 0; k < kTried; ++k) {
    d[k] = v.to_f16(v.largest / (largest_code - kBelowLargestCode[k]));
    scale[k] = v.from_f16(d[k]);
    inverse_scale[k] = inverse(scale[k]);
  }
  Lanes errors[kTried] = {};
  for (int i = 0; i < 32; i += kLanes) {
#pragma GCC unroll 3
    for (int k = 0; k < kTried; ++k) {
      const Lanes value = part.value(i);
      const Lanes off = value - round_lanes(clamp_lanes(value * inverse_scale[k], low, high)) * scale[k];
      errors[k] += part.weigh(i, off) * off;
    }
  }
  int best = 0;
  float best_error = INFINITY;
  for (int k = 0; k < kTried; ++k) {
    const float error = sum_lanes(errors[k]);
    if (error < best_error) best_error = error, best = k;
  }
  alignas(16) int32_t bits[32];
  for (int i = 0; i < 32; i += kLanes) {
    const LaneMask rounded = round_to_bits(clamp_lanes(part.value(i) * inverse_scale[best], low, high));
    std::memcpy(bits + i, &rounded, sizeof(rounded));
  }
  for (int i = 0; i < 32; ++i) code[i] = static_cast<int8_t>(bits[i]);
  return d[best];
}

}  // namespace

uint16_t fit_int8(const float* x, const float* importance, int largest_code, int8_t code[32]) {
  Values<32> v;
  const Loaded loaded = load(x, importance, v);
  const float largest = static_cast<float>(largest_code);
  if (loaded == Loaded::kValues)
    return v.weighted ? search_int8<true>(v, largest, code) : search_int8<false>(v, largest, code);
  std::fill_n(code, 32, int8_t{0});
  return loaded == Loaded::kNotFinite ? kF16NaN : 0;
}

}  // namespace infer
