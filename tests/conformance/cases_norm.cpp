// Cases of rms_norm and layer_norm.
#include <doctest/doctest.h>

#include <cmath>

#include "ggml-like/error.h"
#include "tests/conformance/case.h"

namespace infer::test {
namespace {

struct NormShape {
  int d, heads, t;  // heads 0: x is [t, d], else [t, heads, d]
  bool weight = true, bias = false, view = false;
  std::string data = "";  // "" normal, "zero", "offset": a mean far from zero, "large"
};

std::string describe(const NormShape& s) {
  std::string text = concat("d=", s.d, " t=", s.t);
  if (s.heads) text += concat(" heads=", s.heads);
  if (s.weight) text += " weight";
  if (s.bias) text += " bias";
  if (s.view) text += " view";
  if (!s.data.empty()) text += " " + s.data;
  return text;
}

constexpr float kNormEps = 1e-6f;

void fill(Case& c, const NormShape& s, bool layer, Random& random) {
  c.tokens = s.t;
  c.token_bucket = s.t + 1;
  const int values = s.d * std::max(1, s.heads), width = values + (s.view ? 9 : 0);
  Leaf x = float_leaf({c.token_bucket, width}, RowKind::kTokens, s.t, random, s.data == "large" ? 1e6f : 1);
  for (int64_t i = 0; i < int64_t{s.t} * width; ++i) {
    if (s.data == "zero") x.as<float>()[i] = 0;
    if (s.data == "offset") x.as<float>()[i] += 20;
  }
  c.leaves = {x, float_leaf({s.d}, RowKind::kFixed, 0, random), float_leaf({s.d}, RowKind::kFixed, 0, random)};
  c.build = [=](Graph& g, const std::vector<Weight>& w) {
    ValueId in = g.weight(w[0]);
    if (s.view) in = g.view_columns(in, 4, values);
    if (s.heads) in = g.reshape(in, {g.value(in).desc.shape[0], s.heads, s.d});
    const Weight *weight = s.weight ? &w[1] : nullptr, *bias = s.bias ? &w[2] : nullptr;
    return std::vector{layer ? g.layer_norm(in, weight, bias, kNormEps) : g.rms_norm(in, weight, kNormEps)};
  };
  const std::vector<Leaf> leaves = c.leaves;
  // A sum over d values is off by d / 16 + 5 roundings of the sum of magnitudes.
  c.bounds = [=](const std::vector<Output>& ref) {
    const double sums = (s.d / 16 + 6) * kEps;
    std::vector<double> bound;
    for (int64_t i = 0; i < ref[0].elements(); ++i) {
      const int64_t vector = i / s.d, row = vector / std::max(1, s.heads), head = vector % std::max(1, s.heads);
      const float* v = leaves[0].as<float>() + row * width + (s.view ? 4 : 0) + head * s.d;
      const double y = std::abs(ref[0].floats()[i]);
      if (!layer) {
        // Only a sum of squares: half its relative error, two roundings of the factor, two products.
        bound.push_back(y * (0.5 * (sums + 3 * kEps) + 5 * kEps) + kTiny);
        continue;
      }
      double mean = 0, magnitude = 0, variance = 0;
      for (int k = 0; k < s.d; ++k) mean += v[k] / static_cast<double>(s.d), magnitude += std::abs(v[k]) / s.d;
      for (int k = 0; k < s.d; ++k) variance += (v[k] - mean) * (v[k] - mean) / s.d;
      // The error of the mean affects every difference, and its square the variance. The result and the reference are
      // rounded once each.
      const double mean_error = sums * magnitude + kEps * std::abs(mean);
      const double factor = 1 / std::sqrt(variance + kNormEps);
      const double distance = std::abs(v[i % s.d] - mean);
      const double relative = 0.5 * (sums + 4 * kEps + mean_error * mean_error * factor * factor + 2 * kEps) + 6 * kEps;
      const double w = s.weight ? std::abs(leaves[1].as<float>()[i % s.d]) : 1;
      bound.push_back(factor * w * ((mean_error + kEps * distance) * (1 + relative) + distance * relative) +
                      2 * kEps * y + kTiny);
    }
    return Bounds{bound};
  };
}

void add(std::vector<Entry>& list, const NormShape& s, bool layer, bool quick) {
  add_case(list, layer ? Op::kLayerNorm : Op::kRmsNorm, describe(s), quick,
           [=](Case& c, Random& random) { fill(c, s, layer, random); });
}

}  // namespace

void add_norm_cases(std::vector<Entry>& list) {
  for (const bool layer : {false, true}) {
    add(list, {.d = 37, .heads = 0, .t = 5, .bias = layer}, layer, true);
    add(list, {.d = 256, .heads = 0, .t = 2, .weight = false}, layer, true);
    add(list, {.d = 20, .heads = 3, .t = 3, .view = true}, layer, true);
    for (const std::string data : {"zero", "offset", "large"}) {
      add(list, {.d = 100, .heads = 0, .t = 2, .bias = layer, .data = data}, layer, true);
    }
    for (const int d : {1, 2, 15, 16, 17, 31, 33, 64, 128, 1000, 4099}) {
      for (const int t : {1, 2, 3, 4, 5, 7, 8, 16, 33}) {
        add(list, {.d = d, .heads = 0, .t = t, .view = t % 2 == 0}, layer, false);
        if (d <= 128) add(list, {.d = d, .heads = 5, .t = t, .weight = t != 3, .bias = layer}, layer, false);
      }
    }
  }
}

TEST_CASE("rms_norm") { run_cases(Op::kRmsNorm); }
TEST_CASE("layer_norm") { run_cases(Op::kLayerNorm); }

}  // namespace infer::test
