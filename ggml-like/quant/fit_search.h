// The search over one block or sub-block, shared by the fits of blocks of 32 and of 256. Values are scaled to a
// magnitude of about one by a power of two, which is exact, so that floats suffice for data of any size; a scale found
// here is `scale * 2^exponent` of the data.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "ggml-like/half.h"
#include "ggml-like/quant/fit.h"
#include "ggml-like/quant/lanes.h"
#include "ggml-like/quant/tables.h"

namespace infer::fit {

// ---- Data ----

// 2^n, n from -126 to 127.
inline float power_of_two(int n) { return __builtin_bit_cast(float, static_cast<uint32_t>(n + 127) << 23); }

// kN values and, unless all weights are equal, their weights.
template <int kN>
struct Values {
  alignas(16) float x[kN];
  alignas(16) float w[kN];   // only when weighted
  alignas(16) float wx[kN];  // only when weighted
  bool weighted;
  int exponent;
  float largest;  // magnitude of x

  // Converts an F16 scale of the data to this scaling, and back.
  float from_f16(uint16_t half) const { return f16_to_f32(half) * power_of_two(-exponent); }
  uint16_t to_f16(float scale) const { return scale_to_f16(scale * power_of_two(exponent)); }
};

// A part of kN values, 16-byte aligned. Without weights, the multiplications by them are omitted.
template <int kSize, bool kWeighted>
struct Part {
  static constexpr int kN = kSize;
  const float *x, *w, *wx;

  template <int kTotal>
  Part(const Values<kTotal>& v, int at) : x(v.x + at), w(v.w + at), wx((kWeighted ? v.wx : v.x) + at) {}
  Lanes value(int i) const { return load_lanes(x + i); }
  Lanes weighted_value(int i) const { return load_lanes(wx + i); }
  Lanes weigh(int i, Lanes v) const { return kWeighted ? load_lanes(w + i) * v : v; }
};

enum class Loaded { kValues, kZero, kNotFinite };

// Data below this decodes to zero in every format with an F16 scale.
inline constexpr float kNegligible = 0x1p-60f;
// A scaled sub-block below this, beside larger ones, becomes zero.
inline constexpr float kTiny = 0x1p-40f;

template <int kN>
Loaded load(const float* x, const float* importance, Values<kN>& v) {
  Lanes nan{}, largest{};
  for (int i = 0; i < kN; i += kLanes) {
    Lanes value;
    std::memcpy(&value, x + i, sizeof(value));
    const Lanes magnitude = abs_lanes(value);
    nan += value * 0.0f;
    largest = at_least(magnitude, largest);
  }
  if (sum_lanes(nan) != 0 || std::isnan(sum_lanes(nan))) return Loaded::kNotFinite;
  const float max = std::max(std::max(largest[0], largest[1]), std::max(largest[2], largest[3]));
  if (max < kNegligible) return Loaded::kZero;
  v.exponent = std::min(static_cast<int>(__builtin_bit_cast(uint32_t, max) >> 23) - 127, 126);
  const float factor = power_of_two(-v.exponent);
  v.largest = max * factor;
  for (int i = 0; i < kN; ++i) v.x[i] = x[i] * factor;

  const float heaviest = importance ? *std::max_element(importance, importance + kN) : 0;
  v.weighted = heaviest > 0;
  for (int i = 0; v.weighted && i < kN; ++i) {
    // The floor keeps values that no activation has touched from being ignored.
    v.w[i] = static_cast<float>(importance[i] / double{heaviest}) + 1e-6f;
    v.wx[i] = v.w[i] * v.x[i];
  }
  return Loaded::kValues;
}

// ---- Grids: the values that codes stand for, as floats ----

struct Integers {
  Lanes low_lanes, high_lanes;
  float low, high;

  explicit Integers(IntegerGrid grid)
      : low_lanes(all_lanes(static_cast<float>(grid.low))),
        high_lanes(all_lanes(static_cast<float>(grid.high))),
        low(static_cast<float>(grid.low)),
        high(static_cast<float>(grid.high)) {}
  Lanes snap(Lanes v) const { return round_lanes(clamp_lanes(v, low_lanes, high_lanes)); }
  uint8_t code(float value) const { return static_cast<uint8_t>(value - low); }
  uint8_t zero() const { return code(0); }
};

struct IQ4NL {
  static constexpr float low = kIQ4NLValues[0], high = kIQ4NLValues[15];

  explicit IQ4NL(IQ4NLGrid) {}
  // One comparison per boundary between neighbours; a value on a boundary goes to the lower one.
  static Lanes snap(Lanes v) {
    Lanes value = all_lanes(low);
#pragma GCC unroll 15
    for (int k = 0; k < 15; ++k) {
      const float border = static_cast<float>(kIQ4NLValues[k] + kIQ4NLValues[k + 1]) / 2;
      const Lanes step = all_lanes(static_cast<float>(kIQ4NLValues[k + 1] - kIQ4NLValues[k]));
      value += v > border ? step : Lanes{};
    }
    return value;
  }
  static uint8_t code(float value) {
    int k = 0;
    while (kIQ4NLValues[k] < value) ++k;
    return static_cast<uint8_t>(k);
  }
  static uint8_t zero() { return code(snap(Lanes{})[0]); }
};

// ---- x ~ scale * grid value ----

inline float inverse(float scale) { return scale == 0 ? 0 : 1 / scale; }

struct ScaleSums {
  float xv, vv;  // of w * x * value and w * value^2
};

template <typename Part, typename Grid>
ScaleSums scale_sums(const Part& part, float inverse_scale, const Grid& grid) {
  Lanes xv{}, vv{};
#pragma GCC unroll 8
  for (int i = 0; i < Part::kN; i += kLanes) {
    const Lanes value = grid.snap(part.value(i) * inverse_scale);
    xv += part.weighted_value(i) * value;
    vv += part.weigh(i, value) * value;
  }
  return {sum_lanes(xv), sum_lanes(vv)};
}

// The weighted squared error of coding the values with this scale.
template <typename Part, typename Grid>
float scale_error(const Part& part, float scale, const Grid& grid) {
  const float inverse_scale = inverse(scale);
  Lanes error{};
#pragma GCC unroll 8
  for (int i = 0; i < Part::kN; i += kLanes) {
    const Lanes value = part.value(i);
    const Lanes off = value - grid.snap(value * inverse_scale) * scale;
    error += part.weigh(i, off) * off;
  }
  return sum_lanes(error);
}

// Candidate scales, as multiples of the scale that puts the outermost value on the outermost code.
struct Candidates {
  const float* factor;
  int n;
};

inline constexpr int kFixedPointRounds = 4;

// The best scale over the candidates, at either end of the grid, iterated to a fixed point; 0 if all values are zero.
template <typename Part, typename Grid>
float best_scale(const Part& part, const Grid& grid, Candidates candidates) {
  float largest = 0;  // by magnitude, with its sign
  for (int i = 0; i < Part::kN; ++i) {
    if (std::abs(part.x[i]) > std::abs(largest)) largest = part.x[i];
  }
  if (std::abs(largest) < kTiny) return 0;
  float best = 0, best_gain = 0;
  const auto improve = [&](float inverse_scale) {
    const ScaleSums sums = scale_sums(part, inverse_scale, grid);
    if (!(sums.vv > 0) || !(sums.xv * sums.xv > best_gain * sums.vv)) return false;
    best = sums.xv / sums.vv;
    best_gain = sums.xv * sums.xv / sums.vv;
    return true;
  };
  const float to_low = grid.low / largest, to_high = grid.high / largest;
  for (int k = 0; k < candidates.n; ++k) {
    improve(to_low * candidates.factor[k]);
    improve(to_high * candidates.factor[k]);
  }
  for (int round = 0; round < kFixedPointRounds && best != 0 && improve(1 / best); ++round) continue;
  return best;
}

// ---- x ~ scale * code + offset, code in 0 .. max_code ----

struct Affine {
  float scale = 0, offset = 0;
};

struct AffineSums {
  float q, qq, xq;  // of w * code, w * code^2, w * x * code
};

template <typename Part>
AffineSums affine_sums(const Part& part, float inverse_scale, float offset, float max_code) {
  const Lanes low{}, high = all_lanes(max_code);
  const Lanes shift = all_lanes(offset * inverse_scale);
  Lanes sum_q{}, sum_qq{}, sum_xq{};
#pragma GCC unroll 8
  for (int i = 0; i < Part::kN; i += kLanes) {
    const Lanes q = round_lanes(clamp_lanes(part.value(i) * inverse_scale - shift, low, high));
    const Lanes wq = part.weigh(i, q);
    sum_q += wq;
    sum_qq += wq * q;
    sum_xq += part.weighted_value(i) * q;
  }
  return {sum_lanes(sum_q), sum_lanes(sum_qq), sum_lanes(sum_xq)};
}

template <typename Part>
float affine_error(const Part& part, Affine a, float max_code) {
  const Lanes low{}, high = all_lanes(max_code);
  const float inverse_scale = inverse(a.scale);
  Lanes error{};
#pragma GCC unroll 8
  for (int i = 0; i < Part::kN; i += kLanes) {
    const Lanes above = part.value(i) - a.offset;
    const Lanes off = above - round_lanes(clamp_lanes(above * inverse_scale, low, high)) * a.scale;
    error += part.weigh(i, off) * off;
  }
  return sum_lanes(error);
}

// Sums that do not depend on the codes: of w, of w * x.
struct Totals {
  float w, x;
};

template <typename Part>
Totals totals(const Part& part) {
  Lanes w{}, x{};
  for (int i = 0; i < Part::kN; i += kLanes) {
    w += part.weigh(i, all_lanes(1));
    x += part.weighted_value(i);
  }
  return {sum_lanes(w), sum_lanes(x)};
}

struct Range {
  float low, high;
};

template <typename Part>
Range range(const Part& part) {
  Lanes low = part.value(0), high = low;
  for (int i = kLanes; i < Part::kN; i += kLanes) {
    const Lanes value = part.value(i);
    low = at_most(value, low);
    high = at_least(value, high);
  }
  return {std::min(std::min(low[0], low[1]), std::min(low[2], low[3])),
          std::max(std::max(high[0], high[1]), std::max(high[2], high[3]))};
}

enum class Offset { kAny, kNotPositive };

// The best pair over the candidate scales, iterated to a fixed point; scale 0 if all values are equal.
template <typename Part>
Affine best_affine(const Part& part, float max_code, Offset kind, Candidates candidates) {
  auto [low, high] = range(part);
  if (kind == Offset::kNotPositive) low = std::min(low, 0.0f);
  if (!(high - low > kTiny)) return {0, low};
  const Totals total = totals(part);
  Affine best{(high - low) / max_code, low};
  float best_gain = -INFINITY;
  const auto improve = [&](float inverse_scale, float offset) {
    const AffineSums s = affine_sums(part, inverse_scale, offset, max_code);
    if (!(s.qq > 0)) return false;
    Affine fitted{s.xq / s.qq, 0};
    const float determinant = total.w * s.qq - s.q * s.q;
    const bool singular = !(determinant > 1e-5f * total.w * s.qq);  // all codes equal, up to rounding
    if (singular && kind == Offset::kAny) return false;
    if (!singular) {
      fitted = {(total.w * s.xq - total.x * s.q) / determinant, (s.qq * total.x - s.q * s.xq) / determinant};
      if (kind == Offset::kNotPositive && fitted.offset > 0) fitted = {s.xq / s.qq, 0};
    }
    if (!(fitted.scale > 0)) return false;
    // By how much the fit reduces the weighted sum of x^2: for a least-squares solution, the inner product of fit and
    // x.
    const float gain = fitted.scale * s.xq + fitted.offset * total.x;
    if (!(gain > best_gain)) return false;
    best_gain = gain;
    best = fitted;
    return true;
  };
  const float full = max_code / (high - low);
  for (int k = 0; k < candidates.n; ++k) improve(full * candidates.factor[k], low);
  for (int round = 0; round < kFixedPointRounds && improve(1 / best.scale, best.offset); ++round) continue;
  return best;
}

// ---- Codes, once the scales are chosen ----

// Least squares shrinks values: its error is orthogonal to y, the decoded values, not to the data x. At two bits it
// takes 6 % off every result of a matmul, and that part of the error does not average out over the columns. Multiplying
// scales by factor() restores a share of it. Half avoids three quarters of the squared loss and adds a quarter of the
// plain error that restoring all would add. docs/quantize.md shows what a model gains.
inline constexpr double kShareReturned = 0.5, kShareReturnedOfTwoBits = 1;
struct Projection {
  double xx = 0, xy = 0;  // of w * x * x, w * x * y

  void add(const Projection& other) { xx += other.xx, xy += other.xy; }
  float factor(double share) const { return xy > 0 ? static_cast<float>(1 + share * (xx / xy - 1)) : 1; }
};

template <typename Part, typename Grid>
Projection write_codes(const Part& part, float scale, const Grid& grid, uint8_t* code) {
  const float inverse_scale = inverse(scale);
  Lanes xx{}, xy{};
  for (int i = 0; i < Part::kN; i += kLanes) {
    const Lanes value = grid.snap(part.value(i) * inverse_scale);
    for (int k = 0; k < kLanes; ++k) code[i + k] = grid.code(value[k]);
    xx += part.weighted_value(i) * part.value(i);
    xy += part.weighted_value(i) * value;
  }
  return {sum_lanes(xx), static_cast<double>(sum_lanes(xy)) * scale};
}

template <typename Part>
Projection write_codes(const Part& part, Affine a, float max_code, uint8_t* code) {
  const float inverse_scale = inverse(a.scale);
  Lanes xx{}, xy{};
  for (int i = 0; i < Part::kN; i += kLanes) {
    const Lanes above = part.value(i) - a.offset;
    const Lanes q = round_lanes(clamp_lanes(above * inverse_scale, Lanes{}, all_lanes(max_code)));
    for (int k = 0; k < kLanes; ++k) code[i + k] = static_cast<uint8_t>(q[k]);
    xx += part.weighted_value(i) * part.value(i);
    xy += part.weighted_value(i) * (q * a.scale + a.offset);
  }
  return {sum_lanes(xx), sum_lanes(xy)};
}

}  // namespace infer::fit
