#include "ggml-like/rope_angles.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ggml-like/float_math.h"

namespace infer {
namespace {

// The (fractional) pair that makes `rotations` full turns within the original context.
double pair_of_rotations(const RopeTableParams& p, double rotations) {
  return p.n_dims * portable_log(p.original_context / (rotations * 2 * std::numbers::pi)) /
         (2 * portable_log(p.freq_base));
}

}  // namespace

RopeAngles rope_angles(const RopeTableParams& p, std::span<const float> factors) {
  RopeAngles angles;
  double magnitude = p.attn_factor;
  double low = 0, high = 0;
  const bool yarn = p.ext_factor != 0;
  if (yarn) {
    low = std::max(0.0, std::floor(pair_of_rotations(p, p.beta_fast)));
    high = std::min(p.n_dims - 1.0, std::ceil(pair_of_rotations(p, p.beta_slow)));
    magnitude *= 1 + 0.1 * portable_log(1.0 / p.freq_scale);
  }
  for (int i = 0; i < p.n_dims / 2; ++i) {
    double step = portable_pow(p.freq_base, -2.0 * i / p.n_dims);
    if (!factors.empty()) step /= factors[i];
    double blend = 0;  // weight of extrapolation
    if (yarn) blend = (1 - std::clamp((i - low) / std::max(0.001, high - low), 0.0, 1.0)) * p.ext_factor;
    angles.step.push_back((p.inverse ? -step : step) * (p.freq_scale * (1 - blend) + blend));
  }
  angles.magnitude = static_cast<float>(magnitude);
  return angles;
}

void rope_row(const RopeAngles& angles, int position, float* row) {
  for (size_t i = 0; i < angles.step.size(); ++i) {
    const SinCos v = portable_sincos(position * angles.step[i]);
    row[2 * i] = static_cast<float>(v.cos) * angles.magnitude;
    row[2 * i + 1] = static_cast<float>(v.sin) * angles.magnitude;
  }
}

float position_factor(const PositionFactorParams& p, int position) {
  const int64_t intervals = (int64_t{position} + p.offset) / p.interval;
  return static_cast<float>(1 + p.scale * portable_log(static_cast<double>(1 + intervals)));
}

}  // namespace infer
