// Super-blocks of 256. First each sub-block is fitted separately, with arbitrary float scales. Then two stages
// alternate until the error stops falling: the integers that represent these scales for given steps, each tried with
// its neighbours on the data; and the steps for given integers and codes, by least squares over all 256 values.
// Finally the steps are increased slightly, see Projection.
#include <algorithm>
#include <cmath>

#include "ggml-like/quant/fit.h"
#include "ggml-like/quant/fit_search.h"

namespace infer {
namespace {

using namespace fit;

// Chosen by measurement, for speed: twice as many candidates lower the error by less than 1 %.
constexpr float kCoarseFactors[] = {0.72f, 0.76f, 0.80f, 0.84f, 0.88f, 0.91f, 0.94f,
                                    0.97f, 1.0f,  1.03f, 1.06f, 1.10f, 1.14f};                // 3 and 4 bits
constexpr float kFineFactors[] = {0.90f, 0.92f, 0.94f, 0.955f, 0.97f, 0.985f, 1.0f, 1.015f};  // 6 bits
constexpr float kAffineCoarseFactors[] = {0.85f, 0.9f, 0.95f, 1.0f, 1.05f, 1.1f, 1.15f, 1.2f, 1.27f, 1.35f, 1.45f};
constexpr float kAffineFactors[] = {0.92f, 0.95f, 0.98f, 1.0f, 1.02f, 1.05f, 1.08f, 1.12f, 1.17f};
constexpr int kMaxRounds = 3;

template <size_t kN>
constexpr Candidates candidates(const float (&factors)[kN]) {
  return {factors, static_cast<int>(kN)};
}

int nearest(float v, int low, int high) {
  return static_cast<int>(round_lanes(all_lanes(std::clamp(v, static_cast<float>(low), static_cast<float>(high))))[0]);
}

// Offsets from the nearest integer to try, nearest first so that it wins ties.
constexpr int kNeighbours[] = {0, -1, 1, -2, 2};

// Where the search for the steps starts, as multiples of the step that puts the largest sub-block's scale on the
// outermost integer. If that scale is far larger than the others, they have few integers to choose from; with three
// bits it pays to try whether clipping it is better.
struct Starts {
  const float* factor;
  int n;
};
constexpr float kOneStart[] = {1.0f}, kTwoStarts[] = {1.0f, 0.7f};

template <int kSub, bool kWeighted, typename Grid>
void search_scales(const Values<256>& v, const Grid& grid, Candidates tried, Starts starts, int min_scale,
                   int max_scale, Fit256& fit) {
  using SubBlock = Part<kSub, kWeighted>;
  constexpr int kSubs = 256 / kSub;
  float free_scale[kSubs], largest = 0;
  for (int s = 0; s < kSubs; ++s) {
    free_scale[s] = best_scale(SubBlock(v, s * kSub), grid, tried);
    if (std::abs(free_scale[s]) > std::abs(largest)) largest = free_scale[s];
  }
  float best_error = INFINITY;
  const auto improve = [&](uint16_t d) {
    float scale[kSubs], last_error = INFINITY;
    std::copy_n(free_scale, kSubs, scale);
    for (int round = 0; round < kMaxRounds; ++round) {
      const float step = v.from_f16(d), inverse_step = inverse(step);
      float error = 0;
      double xv = 0, vv = 0;
      int16_t chosen[kSubs] = {};
      for (int s = 0; s < kSubs; ++s) {
        const SubBlock part(v, s * kSub);
        const int middle = nearest(scale[s] * inverse_step, min_scale, max_scale);
        float least = INFINITY;
        for (const int k : kNeighbours) {
          const int candidate = middle + k;
          if (candidate < min_scale || candidate > max_scale) continue;
          const float e = scale_error(part, step * static_cast<float>(candidate), grid);
          if (e < least) least = e, chosen[s] = static_cast<int16_t>(candidate);
        }
        error += least;
        const float factor = chosen[s];
        scale[s] = step * factor;
        const ScaleSums sums = scale_sums(part, inverse(scale[s]), grid);
        xv += factor * sums.xv;
        vv += factor * factor * sums.vv;
      }
      if (!(error < last_error)) return;
      last_error = error;
      if (error < best_error) {
        best_error = error;
        fit.d = d;
        std::copy_n(chosen, kSubs, fit.scale);
      }
      const uint16_t next = vv > 0 ? v.to_f16(static_cast<float>(xv / vv)) : d;
      if (next == d) return;
      d = next;
    }
  };
  const float step = largest / static_cast<float>(min_scale);  // negative; |min_scale| is max_scale + 1
  for (int i = 0; i < starts.n; ++i) improve(v.to_f16(step * starts.factor[i]));

  const float chosen_step = v.from_f16(fit.d);
  Projection projection;
  for (int s = 0; s < kSubs; ++s) {
    const float scale = chosen_step * static_cast<float>(fit.scale[s]);
    projection.add(write_codes(SubBlock(v, s * kSub), scale, grid, fit.code + s * kSub));
  }
  fit.d = v.to_f16(chosen_step * projection.factor(kShareReturned));
}

template <int kSub, typename Grid>
Fit256 fit_scales(const float* x, const float* importance, const Grid& grid, Candidates tried, Starts starts,
                  int min_scale, int max_scale) {
  Fit256 fit{};
  Values<256> v;
  const Loaded loaded = load(x, importance, v);
  if (loaded == Loaded::kNotFinite) fit.d = kF16NaN;
  if (loaded != Loaded::kValues) std::fill_n(fit.code, 256, grid.zero());
  else if (v.weighted) search_scales<kSub, true>(v, grid, tried, starts, min_scale, max_scale, fit);
  else search_scales<kSub, false>(v, grid, tried, starts, min_scale, max_scale, fit);
  return fit;
}

// Least squares for the two steps: x ~ step * l * q - min_step * m for given l, q, m.
struct StepSums {
  double llqq = 0, lmq = 0, mm = 0, lxq = 0, mx = 0;

  void add(float l, float m, const AffineSums& s, const Totals& total) {
    llqq += l * l * s.qq;
    lmq += l * m * s.q;
    mm += m * m * total.w;
    lxq += l * s.xq;
    mx += m * total.x;
  }
  // Returns false if no positive step solves it.
  bool solve(float& step, float& min_step) const {
    const double determinant = llqq * mm - lmq * lmq;
    if (determinant > 1e-6 * llqq * mm) {
      step = static_cast<float>((lxq * mm - lmq * mx) / determinant);
      min_step = static_cast<float>((lmq * lxq - llqq * mx) / determinant);
    } else if (llqq > 0) {
      step = static_cast<float>(lxq / llqq);
      min_step = 0;
    }
    return step > 0 && min_step >= 0;
  }
};

template <int kSub, bool kWeighted>
void search_minima(const Values<256>& v, float top, Candidates tried, int reach, int max_scale, Fit256& fit) {
  using SubBlock = Part<kSub, kWeighted>;
  constexpr int kSubs = 256 / kSub;
  float scale[kSubs], min[kSubs], largest_scale = 0, largest_min = 0;
  for (int s = 0; s < kSubs; ++s) {
    const Affine best = best_affine(SubBlock(v, s * kSub), top, Offset::kNotPositive, tried);
    scale[s] = best.scale;
    min[s] = -best.offset;
    largest_scale = std::max(largest_scale, scale[s]);
    largest_min = std::max(largest_min, min[s]);
  }
  float step = largest_scale / static_cast<float>(max_scale), min_step = largest_min / static_cast<float>(max_scale);
  float best_error = INFINITY;
  for (int round = 0; round < kMaxRounds; ++round) {
    const uint16_t d = v.to_f16(step), dmin = v.to_f16(min_step);
    if (round > 0 && d == fit.d && dmin == fit.dmin) break;
    step = v.from_f16(d), min_step = v.from_f16(dmin);
    const float inverse_step = inverse(step), inverse_min_step = inverse(min_step);
    float error = 0;
    StepSums sums;
    int16_t chosen[kSubs] = {}, chosen_min[kSubs] = {};
    for (int s = 0; s < kSubs; ++s) {
      const SubBlock part(v, s * kSub);
      const int middle = nearest(scale[s] * inverse_step, 0, max_scale);
      const int middle_min = nearest(min[s] * inverse_min_step, 0, max_scale);
      float least = INFINITY;
      for (int l = std::max(0, middle - reach); l <= std::min(max_scale, middle + reach); ++l) {
        for (int m = std::max(0, middle_min - reach); m <= std::min(max_scale, middle_min + reach); ++m) {
          if (round > 0 && l != middle && m != middle_min)
            continue;  // after the first round, changing one at a time suffices
          const Affine trial{step * static_cast<float>(l), -min_step * static_cast<float>(m)};
          const float e = affine_error(part, trial, top);
          if (e < least) least = e, chosen[s] = static_cast<int16_t>(l), chosen_min[s] = static_cast<int16_t>(m);
        }
      }
      error += least;
      scale[s] = step * static_cast<float>(chosen[s]);
      min[s] = min_step * static_cast<float>(chosen_min[s]);
      sums.add(chosen[s], chosen_min[s], affine_sums(part, inverse(scale[s]), -min[s], top), totals(part));
    }
    if (!(error < best_error)) break;
    best_error = error;
    fit.d = d;
    fit.dmin = dmin;
    std::copy_n(chosen, kSubs, fit.scale);
    std::copy_n(chosen_min, kSubs, fit.min);
    if (!sums.solve(step, min_step)) break;
  }
  step = v.from_f16(fit.d), min_step = v.from_f16(fit.dmin);
  Projection projection;
  for (int s = 0; s < kSubs; ++s) {
    const Affine a{step * static_cast<float>(fit.scale[s]), -min_step * static_cast<float>(fit.min[s])};
    projection.add(write_codes(SubBlock(v, s * kSub), a, top, fit.code + s * kSub));
  }
  const float factor = projection.factor(top > 3 ? kShareReturned : kShareReturnedOfTwoBits);
  fit.d = v.to_f16(step * factor);
  fit.dmin = v.to_f16(min_step * factor);
}

template <int kSub>
Fit256 fit_minima(const float* x, const float* importance, int max_code, Candidates tried, int reach, int max_scale) {
  Fit256 fit{};
  Values<256> v;
  const Loaded loaded = load(x, importance, v);
  const float top = static_cast<float>(max_code);
  if (loaded == Loaded::kNotFinite) fit.d = kF16NaN;
  if (loaded != Loaded::kValues) return fit;
  if (v.weighted) search_minima<kSub, true>(v, top, tried, reach, max_scale, fit);
  else search_minima<kSub, false>(v, top, tried, reach, max_scale, fit);
  return fit;
}

}  // namespace

Fit256 fit_scale256_sub16(const float* x, const float* importance, IntegerGrid grid, int min_scale, int max_scale) {
  if (grid.high > 8) {
    return fit_scales<16>(x, importance, Integers(grid), candidates(kFineFactors), {kOneStart, 1}, min_scale,
                          max_scale);
  }
  return fit_scales<16>(x, importance, Integers(grid), candidates(kCoarseFactors), {kTwoStarts, 2}, min_scale,
                        max_scale);
}

Fit256 fit_scale256_sub32(const float* x, const float* importance, IQ4NLGrid grid, int min_scale, int max_scale) {
  return fit_scales<32>(x, importance, IQ4NL(grid), candidates(kCoarseFactors), {kOneStart, 1}, min_scale, max_scale);
}

Fit256 fit_min256_sub16(const float* x, const float* importance, int max_code, int max_scale) {
  // With few scales to choose from, their choice matters more than the start.
  return fit_minima<16>(x, importance, max_code, candidates(kAffineCoarseFactors), 2, max_scale);
}

Fit256 fit_min256_sub32(const float* x, const float* importance, int max_code, int max_scale) {
  return fit_minima<32>(x, importance, max_code, candidates(kAffineFactors), 1, max_scale);
}

}  // namespace infer
