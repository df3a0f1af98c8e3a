// Cases of rms_norm, layer_norm, rms, softmax and sparsify.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

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

// `make` adds the operation to the graph, and `bound(x, i, y)` is the error bound of element i of the result y of a
// vector x.
void add_reduction(std::vector<Entry>& list, Op op, const NormShape& s, const std::string& parameter, bool quick,
                   const std::function<ValueId(Graph&, ValueId)>& make,
                   const std::function<double(const float* x, int64_t i, double y)>& bound) {
  NormShape named = s;
  named.weight = false;  // there is none
  add_case(list, op, describe(named) + parameter, quick, [=](Case& c, Random& random) {
    fill(c, s, false, random);
    const int values = s.d * std::max(1, s.heads), width = values + (s.view ? 9 : 0);
    c.build = [=](Graph& g, const std::vector<Weight>& w) {
      ValueId in = g.weight(w[0]);
      if (s.view) in = g.view_columns(in, 4, values);
      if (s.heads) in = g.reshape(in, {g.value(in).desc.shape[0], s.heads, s.d});
      return std::vector{make(g, in)};
    };
    const std::vector<Leaf> leaves = c.leaves;
    c.bounds = [=](const std::vector<Output>& ref) {
      std::vector<double> bounds;
      const int64_t n = op == Op::kRms ? 1 : s.d;  // values of a result
      for (int64_t i = 0; i < ref[0].elements(); ++i) {
        const int64_t vector = i / n, row = vector / std::max(1, s.heads), head = vector % std::max(1, s.heads);
        const float* x = leaves[0].as<float>() + row * width + (s.view ? 4 : 0) + head * s.d;
        bounds.push_back(bound(x, i % n, std::abs(ref[0].floats()[i])));
      }
      return Bounds{bounds};
    };
  });
}

// The number of roundings, relative to the sum of magnitudes, by which a sum over d values is off.
double sum_error(int d) { return (d / 16 + 6) * kEps; }

void add_rms(std::vector<Entry>& list, const NormShape& s, bool quick) {
  add_reduction(
      list, Op::kRms, s, "", quick, [](Graph& g, ValueId x) { return g.rms(x); },
      // Half the relative error of a sum of squares; a division, the root, and the reference's rounding.
      [=](const float*, int64_t, double y) { return y * (0.5 * (sum_error(s.d) + 3 * kEps) + 3 * kEps) + kTiny; });
}

void add_softmax(std::vector<Entry>& list, const NormShape& s, bool quick) {
  add_reduction(
      list, Op::kSoftmax, s, "", quick, [](Graph& g, ValueId x) { return g.softmax(x); },
      // 2e-7 of exp in numerator and sum, whose arguments are rounded once; a reciprocal and a product.
      [=](const float* x, int64_t, double y) {
        const auto [least, most] = std::minmax_element(x, x + s.d);
        return y * (4e-7 + sum_error(s.d) + (4 + 2 * (double{*most} - *least)) * kEps) + 3e-37;
      });
}

void add_sparsify(std::vector<Entry>& list, const NormShape& s, float factor, bool quick) {
  add_reduction(
      list, Op::kSparsify, s, concat(" factor=", factor), quick,
      [=](Graph& g, ValueId x) { return g.sparsify(x, factor); },
      // The error of the mean affects every difference, and its square the variance.
      [=](const float* x, int64_t i, double y) {
        double mean = 0, magnitude = 0, squares = 0;
        for (int k = 0; k < s.d; ++k) mean += x[k] / static_cast<double>(s.d), magnitude += std::abs(x[k]) / s.d;
        for (int k = 0; k < s.d; ++k) squares += (x[k] - mean) * (x[k] - mean);
        const double mean_error = sum_error(s.d) * magnitude + kEps * std::abs(mean);
        const double deviation = std::sqrt(squares / (s.d - 1)), cutoff = std::abs(factor) * deviation;
        const double lost = s.d * mean_error * mean_error / (squares > 0 ? squares : 1);
        return mean_error + kEps * std::abs(x[i] - mean) +
               cutoff * (0.5 * (sum_error(s.d) + 6 * kEps + lost) + 3 * kEps) +
               std::abs(factor) * (squares > 0 ? 0 : 2 * mean_error) + 2 * kEps * y + kTiny;
      });
}

void add_reduction_cases(std::vector<Entry>& list) {
  const std::vector<NormShape> quick = {{.d = 37, .heads = 0, .t = 5},
                                        {.d = 256, .heads = 0, .t = 2, .data = "offset"},
                                        {.d = 20, .heads = 3, .t = 3, .view = true}};
  std::vector<NormShape> others;
  for (const int d : {2, 15, 16, 17, 33, 1000, 4099}) {
    for (const int t : {1, 4, 33}) others.push_back({.d = d, .heads = 0, .t = t, .view = t == 4});
    if (d < 100) others.push_back({.d = d, .heads = 5, .t = 7});
  }
  for (const bool in_subset : {true, false}) {
    for (const NormShape& s : in_subset ? quick : others) {
      add_rms(list, s, in_subset);
      add_softmax(list, s, in_subset);
      add_sparsify(list, s, 1.6448534f, in_subset);
    }
  }
  add_rms(list, {.d = 1, .heads = 4, .t = 3}, true);
  add_rms(list, {.d = 100, .heads = 0, .t = 2, .data = "zero"}, true);
  add_rms(list, {.d = 100, .heads = 0, .t = 2, .data = "large"}, true);
  add_softmax(list, {.d = 1, .heads = 4, .t = 3}, true);
  add_softmax(list, {.d = 5, .heads = 0, .t = 9, .data = "large"}, true);
  add_sparsify(list, {.d = 100, .heads = 0, .t = 2, .data = "large"}, 1.6448534f, true);
  add_sparsify(list, {.d = 100, .heads = 0, .t = 2, .data = "zero"}, 1.6448534f, true);
  add_sparsify(list, {.d = 64, .heads = 0, .t = 2}, -0.5f, true);
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
  add_reduction_cases(list);
}

TEST_CASE("rms_norm") { run_cases(Op::kRmsNorm); }
TEST_CASE("layer_norm") { run_cases(Op::kLayerNorm); }
TEST_CASE("rms") { run_cases(Op::kRms); }
TEST_CASE("softmax") { run_cases(Op::kSoftmax); }
TEST_CASE("sparsify") { run_cases(Op::kSparsify); }

}  // namespace infer::test
