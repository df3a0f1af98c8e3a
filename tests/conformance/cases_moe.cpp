// Cases of moe_route and moe_combine.
#include <doctest/doctest.h>

#include <cmath>

#include "ggml-like/error.h"
#include "tests/conformance/case.h"

namespace infer::test {
namespace {

struct RouteShape {
  int experts, used, t;
  Gating gating = Gating::kSoftmax;
  bool normalize = false, bias = false, ties = false;
  float scale = 1;
  int groups = 1, groups_used = 1;
  float shift = 0;     // added to the logits
  bool table = false;  // the experts follow from the token's id
};

void add_route(std::vector<Entry>& list, const RouteShape& s, bool quick) {
  constexpr std::string_view kGating[] = {"softmax", "sigmoid", "softmax-of-selected", "sigmoid-of-selected",
                                          "sqrt-softplus"};
  std::string text = concat(kGating[static_cast<int>(s.gating)], " e=", s.experts, " u=", s.used, " t=", s.t);
  if (s.normalize) text += " normalize";
  if (s.scale != 1) text += concat(" scale=", s.scale);
  if (s.bias) text += " bias";
  if (s.ties) text += " ties";
  if (s.groups > 1) text += concat(" groups=", s.groups_used, "/", s.groups);
  if (s.table) text += " table";
  if (s.shift != 0) text += concat(" shift=", s.shift);
  add_case(list, Op::kMoeRoute, text, quick, [=](Case& c, Random& random) {
    c.tokens = s.t;
    c.token_bucket = s.t + 2;
    Leaf x = float_leaf({c.token_bucket, s.experts}, RowKind::kTokens, s.t, random, 2);
    for (int i = 0; s.ties && i < s.t * s.experts; ++i) x.as<float>()[i] = std::floor(x.as<float>()[i]);
    for (int i = 0; i < s.t * s.experts; ++i) x.as<float>()[i] += s.shift;
    c.leaves.push_back(std::move(x));
    if (s.bias) c.leaves.push_back(float_leaf({s.experts}, RowKind::kFixed, 0, random, 0.3f));
    constexpr int kTokenIds = 11;
    if (s.table) {
      Leaf table{make_desc(DataType::kI32, {kTokenIds, s.used}), {}};
      table.data.resize(table.desc.bytes());
      for (int i = 0; i < kTokenIds * s.used; ++i) table.as<int32_t>()[i] = static_cast<int>(random.next() % s.experts);
      c.leaves.push_back(std::move(table));
      for (int i = 0; i < s.t; ++i) c.token_ids.push_back(static_cast<int32_t>(random.next() % kTokenIds));
    }
    const MoeRouteParams params{s.used, s.gating, s.normalize, s.scale, s.groups, s.groups_used};
    c.build = [=](Graph& g, const std::vector<Weight>& w) {
      const Graph::Route route =
          g.moe_route(g.weight(w[0]), params, s.bias ? &w[1] : nullptr, s.table ? &w.back() : nullptr);
      return std::vector{route.ids, route.weights};
    };
    // Probabilities: 2e-7 of exp in numerator and sum, the additions of the sum, a reciprocal and a product;
    // normalization adds as much again. The selected experts must be the same: gaps in the data are far larger than
    // these errors, or are exact ties. The difference from the maximum is at most 24 and rounded once.
    c.bounds = [=](const std::vector<Output>& ref) {
      const double relative = 2 * (4e-7 + (s.experts / 16 + 10 + 24) * kEps) + (s.used + 4) * kEps;
      std::vector<double> bound;
      for (int64_t i = 0; i < ref[1].elements(); ++i) bound.push_back(relative * std::abs(ref[1].floats()[i]) + kTiny);
      return Bounds{{}, bound};
    };
  });
}

void add_combine(std::vector<Entry>& list, int used, int d, int t, bool quick) {
  add_case(list, Op::kMoeCombine, concat("u=", used, " d=", d, " t=", t), quick, [=](Case& c, Random& random) {
    c.tokens = t;
    c.token_bucket = t + 1;
    c.leaves = {float_leaf({c.token_bucket, used, d}, RowKind::kTokens, t, random),
                float_leaf({c.token_bucket, used}, RowKind::kTokens, t, random)};
    c.build = [](Graph& g, const std::vector<Weight>& w) {
      return std::vector{g.moe_combine(g.weight(w[0]), g.weight(w[1]))};
    };
    const std::vector<Leaf> leaves = c.leaves;
    const auto terms = [=](int64_t row, int i, const auto& f) {
      for (int u = 0; u < used; ++u) {
        f(leaves[0].as<float>()[(row * used + u) * d + i], leaves[1].as<float>()[row * used + u]);
      }
    };
    // In the order of the router's ranks: a product, then fused multiply-adds.
    c.formula = [=] {
      std::vector<float> y;
      for (int64_t row = 0; row < t; ++row) {
        for (int i = 0; i < d; ++i) {
          float sum = 0;
          bool first = true;
          terms(row, i, [&](float v, float w) {
            sum = first ? v * w : std::fma(v, w, sum);
            first = false;
          });
          y.push_back(sum);
        }
      }
      return y;
    };
    c.bounds = [=](const std::vector<Output>&) {
      std::vector<double> bound;
      for (int64_t row = 0; row < t; ++row) {
        for (int i = 0; i < d; ++i) {
          double magnitude = 0;
          terms(row, i, [&](double v, double w) { magnitude += std::abs(v * w); });
          bound.push_back((used + 2) * kEps * magnitude + kTiny);
        }
      }
      return Bounds{bound};
    };
  });
}

}  // namespace

void add_moe_cases(std::vector<Entry>& list) {
  for (const Gating gating : {Gating::kSoftmax, Gating::kSigmoid, Gating::kSoftmaxOfSelected,
                              Gating::kSigmoidOfSelected, Gating::kSqrtSoftplus}) {
    add_route(list, {.experts = 17, .used = 3, .t = 5, .gating = gating}, true);
    add_route(list, {.experts = 8, .used = 2, .t = 3, .gating = gating, .ties = true}, true);
    add_route(list,
              {.experts = 32, .used = 4, .t = 9, .gating = gating, .normalize = true, .bias = true, .scale = 2.5f},
              true);
    for (const int experts : {1, 2, 16, 60, 128}) {
      for (const int used : {1, 2, 8}) {
        for (const int t : {1, 8, 33}) {
          if (used > experts) continue;
          add_route(list, {.experts = experts, .used = used, .t = t, .gating = gating, .normalize = t == 8}, false);
          add_route(list, {.experts = experts, .used = used, .t = t, .gating = gating, .ties = true}, false);
        }
      }
    }
  }
  add_route(list,
            {.experts = 24,
             .used = 5,
             .t = 7,
             .gating = Gating::kSigmoid,
             .normalize = true,
             .bias = true,
             .groups = 6,
             .groups_used = 2},
            true);
  add_route(list, {.experts = 8, .used = 2, .t = 7, .gating = Gating::kSigmoid, .groups = 8, .groups_used = 4}, true);
  add_route(list,
            {.experts = 256,
             .used = 8,
             .t = 16,
             .gating = Gating::kSigmoid,
             .normalize = true,
             .bias = true,
             .groups = 8,
             .groups_used = 4},
            false);
  // The sum of the weights is below the minimum that they are divided by.
  add_route(list, {.experts = 32, .used = 4, .t = 5, .gating = Gating::kSigmoid, .normalize = true, .shift = -16},
            true);
  // Sigmoids that round to 1: the logits still order the experts.
  add_route(list, {.experts = 17, .used = 2, .t = 5, .gating = Gating::kSigmoidOfSelected, .shift = 30}, true);
  for (const Gating gating : {Gating::kSqrtSoftplus, Gating::kSoftmaxOfSelected}) {
    add_route(list, {.experts = 17, .used = 3, .t = 5, .gating = gating, .normalize = true, .table = true}, true);
  }
  add_combine(list, 2, 37, 5, true);
  add_combine(list, 1, 16, 1, true);
  add_combine(list, 5, 19, 4, true);
  for (const int used : {1, 3, 8}) {
    for (const int d : {1, 15, 64, 1000}) {
      for (const int t : {1, 7, 33}) add_combine(list, used, d, t, false);
    }
  }
}

TEST_CASE("moe_route") { run_cases(Op::kMoeRoute); }
TEST_CASE("moe_combine") { run_cases(Op::kMoeCombine); }

}  // namespace infer::test
