// Cases of mix_streams, agreement and sinkhorn.
#include <doctest/doctest.h>

#include <cmath>

#include "ggml-like/error.h"
#include "tests/conformance/case.h"

namespace infer::test {
namespace {

struct MixShape {
  int streams, mixed, d, t;
  bool view = false;  // both operands are columns of one tensor
};

// Calls f(stream's value, weight) for the terms of element i of a row.
template <typename F>
void for_terms(const MixShape& s, const std::vector<Leaf>& leaves, int64_t row, int i, const F& f) {
  const int of_x = s.streams * s.d, of_weights = s.mixed * s.streams, width = of_x + of_weights + 3;
  const float* x = leaves[0].as<float>() + row * (s.view ? width : of_x) + (s.view ? 1 : 0);
  const float* w = s.view ? x + of_x + 1 : leaves[1].as<float>() + row * of_weights;
  for (int k = 0; k < s.streams; ++k) f(x[k * s.d + i % s.d], w[i / s.d * s.streams + k]);
}

void add_mix(std::vector<Entry>& list, const MixShape& s, bool quick) {
  const std::string text = concat("s=", s.streams, " o=", s.mixed, " d=", s.d, " t=", s.t, s.view ? " view" : "");
  add_case(list, Op::kMixStreams, text, quick, [=](Case& c, Random& random) {
    c.tokens = s.t;
    c.token_bucket = s.t + 2;
    const int of_x = s.streams * s.d, of_weights = s.mixed * s.streams;
    if (s.view) {
      c.leaves = {float_leaf({c.token_bucket, of_x + of_weights + 3}, RowKind::kTokens, s.t, random)};
    } else {
      c.leaves = {float_leaf({c.token_bucket, s.streams, s.d}, RowKind::kTokens, s.t, random),
                  float_leaf({c.token_bucket, s.mixed, s.streams}, RowKind::kTokens, s.t, random)};
    }
    c.build = [=](Graph& g, const std::vector<Weight>& w) {
      if (!s.view) return std::vector{g.mix_streams(g.weight(w[0]), g.weight(w[1]))};
      const ValueId all = g.weight(w[0]);
      const int64_t rows = g.value(all).desc.shape[0];
      return std::vector{
          g.mix_streams(g.reshape(g.view_columns(all, 1, of_x), {rows, s.streams, s.d}),
                        g.reshape(g.view_columns(all, of_x + 2, of_weights), {rows, s.mixed, s.streams}))};
    };
    const std::vector<Leaf> leaves = c.leaves;
    // In order of the streams: a product, then fused multiply-adds.
    c.formula = [=] {
      std::vector<float> y;
      for (int64_t row = 0; row < s.t; ++row) {
        for (int i = 0; i < s.mixed * s.d; ++i) {
          float sum = 0;
          bool first = true;
          for_terms(s, leaves, row, i, [&](float v, float w) {
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
      for (int64_t row = 0; row < s.t; ++row) {
        for (int i = 0; i < s.mixed * s.d; ++i) {
          double magnitude = 0;
          for_terms(s, leaves, row, i, [&](double v, double w) { magnitude += std::abs(v * w); });
          bound.push_back((s.streams + 2) * kEps * magnitude + kTiny);
        }
      }
      return Bounds{bound};
    };
  });
}

struct AgreementShape {
  int heads, d, t;
  bool zeros = false, cancels = false;
};

// Makes the second half of each vector cancel the first except for a small product: sums in float precision would be
// wrong by more than what is left.
void cancel(const AgreementShape& s, float* a, float* b) {
  for (int h = 0; h < s.heads; ++h, a += s.d, b += s.d) {
    for (int i = 0; i < s.d / 2; ++i) {
      a[s.d / 2 + i] = a[i];
      b[s.d / 2 + i] = -b[i];
    }
    a[0] = 0.03f;
    b[0] = 0.04f;
    b[s.d / 2] = 0;
  }
}

void add_agreement(std::vector<Entry>& list, const AgreementShape& s) {
  const std::string text =
      concat("h=", s.heads, " d=", s.d, " t=", s.t, s.zeros ? " zeros" : "", s.cancels ? " cancels" : "");
  add_case(list, Op::kAgreement, text, true, [=](Case& c, Random& random) {
    c.tokens = s.t;
    c.token_bucket = s.t + 1;
    const int of_a = s.heads * s.d, width = 2 * of_a + 3;
    // Both operands are columns of one tensor.
    c.leaves = {float_leaf({c.token_bucket, width}, RowKind::kTokens, s.t, random, s.zeros ? 0 : 1)};
    for (int row = 0; s.cancels && row < s.t; ++row) {
      float* a = c.leaves[0].as<float>() + row * width + 1;
      cancel(s, a, a + of_a + 1);
    }
    c.build = [=](Graph& g, const std::vector<Weight>& w) {
      const ValueId all = g.weight(w[0]);
      const Shape shape{g.value(all).desc.shape[0], s.heads, s.d};
      return std::vector{g.agreement(g.reshape(g.view_columns(all, 1, of_a), shape),
                                     g.reshape(g.view_columns(all, of_a + 2, of_a), shape))};
    };
    // Sums have the precision of doubles. Roundings to F32: of the sum, of sqrt(d), of their quotient and of its root;
    // of exp, which is off by 2e-7; of the sum and the quotient in the sigmoid, and of the reference.
    c.bounds = [=](const std::vector<Output>& ref) {
      std::vector<double> bound;
      for (int64_t i = 0; i < ref[0].elements(); ++i) {
        const double y = ref[0].floats()[i], exponent = std::abs(std::log(y / (1 - y)));
        bound.push_back(y * ((1 - y) * (2e-7 + 2.5 * exponent * kEps) + 3 * kEps));
      }
      return Bounds{bound};
    };
  });
}

void add_sinkhorn(std::vector<Entry>& list, int n, int t, const SinkhornParams& params, bool quick) {
  const std::string text = concat("n=", n, " t=", t, " iterations=", params.iterations, " eps=", params.eps);
  add_case(list, Op::kSinkhorn, text, quick, [=](Case& c, Random& random) {
    c.tokens = t;
    c.token_bucket = t + 1;
    c.leaves = {float_leaf({c.token_bucket, n, n}, RowKind::kTokens, t, random, 3)};
    c.build = [=](Graph& g, const std::vector<Weight>& w) { return std::vector{g.sinkhorn(g.weight(w[0]), params)}; };
    // All values are positive. The softmax is off by 4e-7 and the roundings of its exponent and sum; a normalization
    // adds the roundings of its sum and maps relative errors to their differences.
    c.bounds = [=](const std::vector<Output>& ref) {
      const double relative = 2 * (4e-7 + (n + 24) * kEps) + 2.0 * params.iterations * (n + 3) * 2 * kEps;
      std::vector<double> bound;
      for (int64_t i = 0; i < ref[0].elements(); ++i) bound.push_back(2 * relative * ref[0].floats()[i] + kTiny);
      return Bounds{bound};
    };
  });
}

}  // namespace

void add_stream_cases(std::vector<Entry>& list) {
  add_mix(list, {.streams = 4, .mixed = 4, .d = 37, .t = 5}, true);
  add_mix(list, {.streams = 1, .mixed = 4, .d = 19, .t = 3}, true);
  add_mix(list, {.streams = 7, .mixed = 1, .d = 16, .t = 2, .view = true}, true);
  add_agreement(list, {.heads = 3, .d = 24, .t = 5});
  add_agreement(list, {.heads = 4, .d = 1030, .t = 2});
  add_agreement(list, {.heads = 1, .d = 16, .t = 1, .zeros = true});
  add_agreement(list, {.heads = 2, .d = 512, .t = 3, .cancels = true});
  add_sinkhorn(list, 4, 5, {.iterations = 3, .eps = 0.01f}, true);
  add_sinkhorn(list, 3, 33, {.iterations = 1}, true);
  add_sinkhorn(list, 4, 9, {.iterations = 20, .eps = 1e-6f}, true);
  for (const int streams : {1, 4, 9}) {
    for (const int mixed : {1, 4}) {
      for (const int t : {1, 33}) {
        add_mix(list, {.streams = streams, .mixed = mixed, .d = 2048, .t = t, .view = t == 33}, false);
      }
    }
  }
}

TEST_CASE("agreement") { run_cases(Op::kAgreement); }
TEST_CASE("sinkhorn") { run_cases(Op::kSinkhorn); }
TEST_CASE("mix_streams") { run_cases(Op::kMixStreams); }

}  // namespace infer::test
