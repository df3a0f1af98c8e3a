#include "ggml-like/quant/fit.h"

#include <algorithm>
#include <cmath>

#include "ggml-like/half.h"
#include "ggml-like/quant/rounding.h"

namespace infer {
namespace {

// Values of a block or sub-block with their weights.
struct Values {
  double x[256];
  double weight[256];
};

// Returns false when all are zero.
bool load(const float* x, int n, Values& v) {
  double squares = 0;
  for (int i = 0; i < n; ++i) {
    v.x[i] = x[i];
    squares += v.x[i] * v.x[i];
  }
  const double rms = std::sqrt(squares / n);
  for (int i = 0; i < n; ++i) v.weight[i] = rms + std::abs(v.x[i]);
  return squares > 0;
}

int clamp_round(double v, int low, int high) { return round_even(std::clamp<double>(v, low, high)); }

double inverse(double scale) { return scale == 0 ? 0 : 1 / scale; }

// The scale that minimizes sum of w * (x - scale * grid value)^2 over the candidates.
double best_scale(const double* x, const double* w, int n, const Grid& grid) {
  double largest = 0;  // by magnitude, with its sign
  for (int i = 0; i < n; ++i) {
    if (std::abs(x[i]) > std::abs(largest)) largest = x[i];
  }
  if (largest == 0) return 0;

  double best = 0, best_gain = 0;
  const auto try_inverse = [&](double inverse_scale) {
    double xv = 0, vv = 0;
    for (int i = 0; i < n; ++i) {
      const double value = grid.value(grid.nearest(x[i] * inverse_scale));
      xv += w[i] * x[i] * value;
      vv += w[i] * value * value;
    }
    if (vv > 0 && xv * xv > best_gain * vv) {
      best = xv / vv;
      best_gain = xv * xv / vv;
    }
  };
  // The largest value goes near either end of the grid.
  for (int k = -6; k <= 6; ++k) {
    const double shift = 0.15 * k * grid.step();
    try_inverse((grid.low() + shift) / largest);
    try_inverse((grid.high() + shift) / largest);
  }
  for (int round = 0; round < 2 && best != 0; ++round) try_inverse(1 / best);
  return best;
}

struct ScaleOffset {
  double scale = 0;
  double offset = 0;
};

enum class Offset { kAny, kNotPositive };

// The same for x ~ scale * code + offset, code in 0..max_code.
ScaleOffset best_scale_offset(const double* x, const double* w, int n, int max_code, Offset kind) {
  double low = x[0], high = x[0], sum_w = 0, sum_x = 0;
  for (int i = 0; i < n; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
    sum_w += w[i];
    sum_x += w[i] * x[i];
  }
  if (kind == Offset::kNotPositive) low = std::min(low, 0.0);
  if (low == high) return {0, low};

  ScaleOffset best;
  double best_error = INFINITY;
  const auto try_candidate = [&](double inverse_scale, double offset) {
    double q = 0, qq = 0, xq = 0;  // weighted sums of code, code^2, x * code
    for (int i = 0; i < n; ++i) {
      const double code = clamp_round((x[i] - offset) * inverse_scale, 0, max_code);
      q += w[i] * code;
      qq += w[i] * code * code;
      xq += w[i] * x[i] * code;
    }
    if (!(qq > 0)) return;
    const double determinant = sum_w * qq - q * q;
    const bool singular = !(determinant > 1e-9 * sum_w * qq);  // all codes equal, up to rounding
    if (singular && kind == Offset::kAny) return;
    ScaleOffset fit{xq / qq, 0};
    if (!singular) fit = {(sum_w * xq - sum_x * q) / determinant, (qq * sum_x - q * xq) / determinant};
    if (kind == Offset::kNotPositive && fit.offset > 0) fit = {xq / qq, 0};
    if (!(fit.scale > 0)) return;
    // Weighted squared error less the constant sum of w * x^2.
    const double error = fit.scale * fit.scale * qq + fit.offset * fit.offset * sum_w +
                         2 * (fit.scale * fit.offset * q - fit.scale * xq - fit.offset * sum_x);
    if (error < best_error) {
      best = fit;
      best_error = error;
    }
  };
  best = {(high - low) / max_code, low};
  for (int k = -8; k <= 8; ++k) try_candidate((max_code + 0.1 * k) / (high - low), low);
  for (int round = 0; round < 2; ++round) try_candidate(1 / best.scale, best.offset);
  return best;
}

double squared(double x) { return x * x; }

}  // namespace

int Grid::nearest(double v) const {
  if (!table_) return clamp_round(v, low_, high_) - low_;
  if (!(v > low_)) return 0;
  if (v >= high_) return 15;
  return nearest_[static_cast<int>(2 * (v - low_))];
}

bool all_finite(const float* x, int n) {
  return std::all_of(x, x + n, [](float v) { return std::isfinite(v); });
}

uint16_t scale_to_f16(double scale) {
  constexpr double kLargest = 65504;
  return f32_to_f16(static_cast<float>(std::clamp(scale, -kLargest, kLargest)));
}

Fit32 fit_scale32(const float* x, const Grid& grid) {
  Fit32 fit{};
  if (!all_finite(x, 32)) {
    fit.d = kF16NaN;
    return fit;
  }
  Values v;
  if (load(x, 32, v)) fit.d = scale_to_f16(best_scale(v.x, v.weight, 32, grid));
  const double inverse_scale = inverse(f16_to_f32(fit.d));
  for (int i = 0; i < 32; ++i) fit.code[i] = static_cast<uint8_t>(grid.nearest(v.x[i] * inverse_scale));
  return fit;
}

Fit32 fit_min32(const float* x, int max_code) {
  Fit32 fit{};
  if (!all_finite(x, 32)) {
    fit.d = kF16NaN;
    return fit;
  }
  Values v;
  if (!load(x, 32, v)) return fit;
  const ScaleOffset best = best_scale_offset(v.x, v.weight, 32, max_code, Offset::kAny);
  fit.d = scale_to_f16(best.scale);
  fit.m = scale_to_f16(best.offset);
  const double inverse_scale = inverse(f16_to_f32(fit.d));
  const double m = f16_to_f32(fit.m);
  for (int i = 0; i < 32; ++i)
    fit.code[i] = static_cast<uint8_t>(clamp_round((v.x[i] - m) * inverse_scale, 0, max_code));
  return fit;
}

Fit256 fit_scale256(const float* x, int sub_block, const Grid& grid, int min_scale, int max_scale) {
  Fit256 fit{};
  if (!all_finite(x, 256)) {
    fit.d = kF16NaN;
    return fit;
  }
  Values v;
  load(x, 256, v);
  const int n_sub = 256 / sub_block;
  double scale[16], largest = 0;
  for (int s = 0; s < n_sub; ++s) {
    scale[s] = best_scale(v.x + s * sub_block, v.weight + s * sub_block, sub_block, grid);
    if (std::abs(scale[s]) > std::abs(largest)) largest = scale[s];
  }
  fit.d = scale_to_f16(largest / min_scale);  // min_scale is negative and one further from zero than max_scale
  const double d = f16_to_f32(fit.d);
  for (int s = 0; s < n_sub; ++s) {
    fit.scale[s] = static_cast<int16_t>(clamp_round(scale[s] * inverse(d), min_scale, max_scale));
    const double inverse_step = inverse(d * fit.scale[s]);
    for (int i = s * sub_block; i < (s + 1) * sub_block; ++i) {
      fit.code[i] = static_cast<uint8_t>(grid.nearest(v.x[i] * inverse_step));
    }
  }
  return fit;
}

Fit256 fit_min256(const float* x, int sub_block, int max_code, int max_scale) {
  Fit256 fit{};
  if (!all_finite(x, 256)) {
    fit.d = kF16NaN;
    return fit;
  }
  Values v;
  if (!load(x, 256, v)) return fit;
  const int n_sub = 256 / sub_block;
  ScaleOffset best[16];
  double largest_scale = 0, largest_min = 0;
  for (int s = 0; s < n_sub; ++s) {
    best[s] =
        best_scale_offset(v.x + s * sub_block, v.weight + s * sub_block, sub_block, max_code, Offset::kNotPositive);
    largest_scale = std::max(largest_scale, best[s].scale);
    largest_min = std::max(largest_min, -best[s].offset);
  }
  fit.d = scale_to_f16(largest_scale / max_scale);
  fit.dmin = scale_to_f16(largest_min / max_scale);
  const double d = f16_to_f32(fit.d);
  const double dmin = f16_to_f32(fit.dmin);
  for (int s = 0; s < n_sub; ++s) {
    const double* sx = v.x + s * sub_block;
    const double* sw = v.weight + s * sub_block;
    const int middle_scale = clamp_round(best[s].scale * inverse(d), 0, max_scale);
    const int middle_min = clamp_round(-best[s].offset * inverse(dmin), 0, max_scale);
    double best_error = INFINITY;
    for (int k : {4, 0, 1, 2, 3, 5, 6, 7, 8}) {  // the neighbourhood of 3 x 3, its middle first
      const int candidate = middle_scale + k / 3 - 1;
      const int candidate_min = middle_min + k % 3 - 1;
      if (candidate < 0 || candidate > max_scale || candidate_min < 0 || candidate_min > max_scale) continue;
      const double step = d * candidate;
      const double inverse_step = inverse(step);
      const double min = dmin * candidate_min;
      uint8_t code[32];
      double error = 0;
      for (int i = 0; i < sub_block; ++i) {
        code[i] = static_cast<uint8_t>(clamp_round((sx[i] + min) * inverse_step, 0, max_code));
        error += sw[i] * squared(sx[i] + min - step * code[i]);
      }
      if (error < best_error) {
        best_error = error;
        fit.scale[s] = static_cast<int16_t>(candidate);
        fit.min[s] = static_cast<int16_t>(candidate_min);
        std::copy_n(code, sub_block, fit.code + s * sub_block);
      }
    }
  }
  return fit;
}

}  // namespace infer
