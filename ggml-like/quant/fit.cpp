// Blocks of 32.
#include "ggml-like/quant/fit.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "ggml-like/half.h"
#include "ggml-like/quant/fit_search.h"

namespace infer {
namespace {

using namespace fit;

// Chosen by measurement: more of them, or closer ones, lower the error by less than 1 %.
constexpr float kScaleFactors[] = {0.72f, 0.76f, 0.80f, 0.84f, 0.88f, 0.91f, 0.94f,
                                   0.97f, 1.0f,  1.03f, 1.06f, 1.10f, 1.14f};
constexpr float kAffineFactors[] = {0.92f, 0.95f, 0.97f, 0.99f, 1.01f, 1.03f, 1.05f, 1.08f, 1.11f, 1.15f, 1.20f};

// A block without data to fit. Returns false when there is.
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
  fit.d = v.to_f16(scale * projection.factor());
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
  const float factor = write_codes(part, stored, max_code, fit.code).factor();
  fit.d = v.to_f16(stored.scale * factor);
  fit.m = v.to_f16(stored.offset * factor);
}

}  // namespace

bool all_finite(const float* x, int n) {
  return std::all_of(x, x + n, [](float v) { return std::isfinite(v); });
}

uint16_t scale_to_f16(double scale) {
  constexpr double kLargest = 65504;
  return f32_to_f16(static_cast<float>(std::clamp(scale, -kLargest, kLargest)));
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

// Of nearly 256 steps only the last few are worth a search: the rounding errors of 32 values differ from one candidate
// to the next by chance, so the best of a handful is several percent better than the first.
uint16_t fit_int8(const float* x, const float* importance, int8_t code[32]) {
  constexpr float kLargestCodes[] = {127.0f, 126.3f, 125.6f};
  std::fill_n(code, 32, int8_t{0});
  Values<32> v;
  const Loaded loaded = load(x, importance, v);
  if (loaded == Loaded::kNotFinite) return kF16NaN;
  if (loaded == Loaded::kZero) return 0;
  const Integers grid(IntegerGrid{-127, 127});
  const auto [low, high] = range(Part<32, false>(v, 0));
  const float largest = std::max(high, -low);
  uint16_t best = 0;
  float best_error = INFINITY;
  for (const float largest_code : kLargestCodes) {
    const uint16_t d = v.to_f16(largest / largest_code);
    const float scale = v.from_f16(d);
    const float error =
        v.weighted ? scale_error(Part<32, true>(v, 0), scale, grid) : scale_error(Part<32, false>(v, 0), scale, grid);
    if (error < best_error) best_error = error, best = d;
  }
  const float inverse_scale = inverse(v.from_f16(best));
  for (int i = 0; i < 32; i += kLanes) {
    const Lanes q = grid.snap(load_lanes(v.x + i) * inverse_scale);
    for (int k = 0; k < kLanes; ++k) code[i + k] = static_cast<int8_t>(q[k]);
  }
  return best;
}

}  // namespace infer
