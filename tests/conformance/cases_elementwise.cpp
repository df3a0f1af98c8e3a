// Cases of add, mul, scale, clamp, unary, xielu and gated_activation.
#include <doctest/doctest.h>

#include <cmath>

#include "ggml-like/error.h"
#include "tests/conformance/case.h"

namespace infer::test {
namespace {

constexpr UnaryKind kKinds[] = {UnaryKind::kSilu, UnaryKind::kGeluTanh,    UnaryKind::kGeluErf,
                                UnaryKind::kRelu, UnaryKind::kReluSquared, UnaryKind::kSigmoid,
                                UnaryKind::kTanh, UnaryKind::kGeluQuick,   UnaryKind::kSoftplus};

// The error bound of f(x), whose exact value is y: the recorded relative errors of exp, tanh and erf (2e-7) and of
// log1p (3e-7), carried through each formula. Where a result underflows to zero, the exact value is below 3e-37. The
// reference also rounds once.
double activation_bound(UnaryKind kind, double x, double y) {
  switch (kind) {
    case UnaryKind::kSilu:
    case UnaryKind::kSigmoid:
      return std::abs(y) * (2e-7 + 4 * kEps) + 3e-37;
    case UnaryKind::kTanh:
      return std::abs(y) * (2e-7 + kEps) + kTiny;
    case UnaryKind::kGeluTanh:
      // The argument of tanh has five roundings, and t (1 - tanh(t)^2) < 0.45. Then come 1 + tanh and a product.
      return 0.5 * std::abs(x) * (2e-7 + 0.45 * 5 * kEps) + 4 * kEps * std::abs(y) + kTiny;
    case UnaryKind::kGeluErf:
      // The argument of erf has two roundings, and t erf'(t) < 0.49.
      return 0.5 * std::abs(x) * (2e-7 + 0.49 * 2 * kEps) + 4 * kEps * std::abs(y) + kTiny;
    case UnaryKind::kGeluQuick:
      // The argument of exp, 1.702 x, has two roundings.
      return std::abs(y) * (2e-7 + (4 + 2 * 1.702 * std::abs(x)) * kEps) + 3e-37;
    case UnaryKind::kSoftplus:
      return std::abs(y) * (5e-7 + 2 * kEps) + 3e-37;
    case UnaryKind::kRelu:
      return 0;
    case UnaryKind::kReluSquared:
      return kEps * std::abs(y) + kTiny;
  }
  return 0;
}

struct Flat {
  int d, t;
  // The second operand: "same", "row", "scalar", "vector" (one value per last dimension), "middle" (one vector for all
  // of a row).
  std::string other = "same";
  bool view = false, three = false, wide = false;
};

std::string describe(const Flat& s) {
  std::string text = concat("d=", s.d, " t=", s.t);
  if (s.other != "same") text += " b=" + s.other;
  if (s.three) text += " rank3";
  if (s.view) text += " view";
  if (s.wide) text += " wide";
  return text;
}

// Two operands: columns of one leaf of 2 d + 5 columns if `view`, else a leaf each.
ValueId operand(Graph& g, const std::vector<Weight>& w, const Flat& s, int index) {
  ValueId x = s.view ? g.view_columns(g.weight(w[0]), index == 0 ? 1 : s.d + 3, s.d) : g.weight(w[index]);
  if (s.three) x = g.reshape(x, {g.value(x).desc.shape[0], 2, s.d / 2});
  return x;
}

void fill_inputs(Case& c, const Flat& s, Random& random) {
  c.tokens = s.t;
  c.token_bucket = s.t + 2;
  const float spread = s.wide ? 30.0f : 2.0f;
  if (s.view) {
    c.leaves.push_back(float_leaf({c.token_bucket, 2 * s.d + 5}, RowKind::kTokens, s.t, random, spread));
    return;
  }
  c.leaves.push_back(float_leaf({c.token_bucket, s.d}, RowKind::kTokens, s.t, random, spread));
  if (s.other == "same") c.leaves.push_back(float_leaf({c.token_bucket, s.d}, RowKind::kTokens, s.t, random, spread));
  if (s.other == "row") c.leaves.push_back(float_leaf({s.three ? s.d / 2 : s.d}, RowKind::kFixed, 0, random, spread));
  if (s.other == "scalar") c.leaves.push_back(float_leaf({c.token_bucket, 1}, RowKind::kTokens, s.t, random, spread));
  if (s.other == "vector") {
    c.leaves.push_back(float_leaf({c.token_bucket, 2, 1}, RowKind::kTokens, s.t, random, spread));
  }
  if (s.other == "middle") {
    c.leaves.push_back(float_leaf({c.token_bucket, 1, s.d / 2}, RowKind::kTokens, s.t, random, spread));
  }
}

void add_binary(std::vector<Entry>& list, Op op, const Flat& s, bool quick) {
  add_case(list, op, describe(s), quick, [=](Case& c, Random& random) {
    fill_inputs(c, s, random);
    c.build = [=](Graph& g, const std::vector<Weight>& w) {
      const ValueId a = operand(g, w, s, 0), b = s.other == "same" ? operand(g, w, s, 1) : g.weight(w[1]);
      return std::vector{op == Op::kAdd ? g.add(a, b) : g.mul(a, b)};
    };
  });
}

void add_scale(std::vector<Entry>& list, const Flat& s, float factor, bool quick) {
  add_case(list, Op::kScale, concat(describe(s), " factor=", factor), quick, [=](Case& c, Random& random) {
    fill_inputs(c, s, random);
    c.build = [=](Graph& g, const std::vector<Weight>& w) { return std::vector{g.scale(operand(g, w, s, 0), factor)}; };
  });
}

void add_clamp(std::vector<Entry>& list, const Flat& s, float low, float high, bool quick) {
  add_case(list, Op::kClamp, concat(describe(s), " [", low, ", ", high, "]"), quick, [=](Case& c, Random& random) {
    fill_inputs(c, s, random);
    c.build = [=](Graph& g, const std::vector<Weight>& w) {
      return std::vector{g.clamp(operand(g, w, s, 0), low, high)};
    };
  });
}

void add_xielu(std::vector<Entry>& list, const Flat& s, const XieluParams& p, bool quick) {
  const std::string text =
      concat(describe(s), " alpha_n=", p.alpha_n, " alpha_p=", p.alpha_p, " beta=", p.beta, " eps=", p.eps);
  add_case(list, Op::kXielu, text, quick, [=](Case& c, Random& random) {
    fill_inputs(c, s, random);
    c.build = [=](Graph& g, const std::vector<Weight>& w) { return std::vector{g.xielu(operand(g, w, s, 0), p)}; };
    const std::vector<Leaf> leaves = c.leaves;
    // exp(x) - 1 is off by 4e-7 of itself; then come a difference, two products and a sum. The reference rounds once.
    c.bounds = [=](const std::vector<Output>& ref) {
      const int width = s.view ? 2 * s.d + 5 : s.d;
      std::vector<double> bound;
      for (int64_t i = 0; i < ref[0].elements(); ++i) {
        const double x = leaves[0].as<float>()[i / s.d * width + i % s.d + (s.view ? 1 : 0)];
        const double bend = std::expm1(std::min<double>(x, p.eps));
        const double error = x > 0 ? 2 * kEps * std::abs(p.alpha_p * x * x)
                                   : std::abs(p.alpha_n) * (4e-7 * std::abs(bend) + 2 * kEps * std::abs(bend - x));
        bound.push_back(error + kEps * std::abs(p.beta * x) + 2 * kEps * std::abs(ref[0].floats()[i]) + kTiny);
      }
      return Bounds{bound};
    };
  });
}

void add_xielu_cases(std::vector<Entry>& list) {
  const XieluParams usual = {.alpha_n = 1.1f, .alpha_p = 0.8f, .beta = 0.5f, .eps = -1e-6f};
  const XieluParams bent = {.alpha_n = 0.7f, .alpha_p = 0.3f, .beta = -0.25f, .eps = -0.4f};
  for (const XieluParams& p : {usual, bent}) {
    add_xielu(list, {.d = 37, .t = 3}, p, true);
    add_xielu(list, {.d = 64, .t = 2, .view = true, .wide = true}, p, true);
    for (const int d : {1, 15, 16, 17, 500, 20001}) {
      for (const int t : {1, 5, 33}) add_xielu(list, {.d = d, .t = t, .wide = t == 5}, p, false);
    }
  }
  add_xielu(list, {.d = 37, .t = 3}, {.alpha_n = 1, .alpha_p = 1, .beta = 0.5f, .eps = 0.25f}, true);
}

// With limits that some of the values exceed.
void add_limited(std::vector<Entry>& list, const std::string& which, const GatedActivationParams& params, const Flat& s,
                 bool quick) {
  add_case(list, Op::kGatedActivation, concat(which, " ", describe(s)), quick, [=](Case& c, Random& random) {
    fill_inputs(c, s, random);
    c.build = [=](Graph& g, const std::vector<Weight>& w) {
      return std::vector{g.gated_activation(operand(g, w, s, 0), operand(g, w, s, 1), params)};
    };
    const std::vector<Leaf> leaves = c.leaves;
    // Limiting f(gate) does not increase its error, and |f(gate)| is at most |gate|; the rest is the addition of the
    // offset and the product.
    c.bounds = [=](const std::vector<Output>& ref) {
      std::vector<double> bound;
      for (int64_t i = 0; i < ref[0].elements(); ++i) {
        const double x = std::min(leaves[0].as<float>()[i], params.gate_limit), y = std::abs(ref[0].floats()[i]);
        const double up = std::abs(static_cast<double>(leaves[1].as<float>()[i])) + params.up_offset;
        bound.push_back(up * activation_bound(params.kind, x, std::abs(x)) + 3 * kEps * y + kTiny);
      }
      return Bounds{bound};
    };
  });
}

void add_limited_cases(std::vector<Entry>& list) {
  GatedActivationParams gpt_oss = UnaryKind::kGeluQuick;
  gpt_oss.gate_limit = gpt_oss.up_limit = 0.9f;
  gpt_oss.up_offset = 1;
  GatedActivationParams step35 = UnaryKind::kSilu;
  step35.activation_limit = step35.up_limit = 0.7f;
  GatedActivationParams gate_only = UnaryKind::kGeluErf;
  gate_only.gate_limit = 0.5f;
  for (const bool wide : {false, true}) {
    add_limited(list, "gelu_quick gate<=0.9 |up|<=0.9 up+1", gpt_oss, {.d = 37, .t = 3, .wide = wide}, true);
    add_limited(list, "silu f<=0.7 |up|<=0.7", step35, {.d = 37, .t = 3, .wide = wide}, true);
    add_limited(list, "gelu_erf gate<=0.5", gate_only, {.d = 48, .t = 2, .wide = wide}, !wide);
  }
  for (const int d : {1, 16, 500, 20001}) {
    for (const int t : {1, 33})
      add_limited(list, "gelu_quick gate<=0.9 |up|<=0.9 up+1", gpt_oss, {.d = d, .t = t}, false);
  }
}

void add_unary(std::vector<Entry>& list, UnaryKind kind, const Flat& s, bool gated, bool quick) {
  const std::string text = concat(unary_name(kind), " ", describe(s));
  add_case(list, gated ? Op::kGatedActivation : Op::kUnary, text, quick, [=](Case& c, Random& random) {
    fill_inputs(c, s, random);
    c.build = [=](Graph& g, const std::vector<Weight>& w) {
      const ValueId x = operand(g, w, s, 0);
      return std::vector{gated ? g.gated_activation(x, operand(g, w, s, 1), kind) : g.unary(x, kind)};
    };
    const std::vector<Leaf> leaves = c.leaves;
    c.bounds = [=](const std::vector<Output>& ref) {
      std::vector<double> bound;
      for (int64_t i = 0; i < ref[0].elements(); ++i) {
        const int64_t row = i / s.d, column = i % s.d;
        const double y = ref[0].floats()[i];
        const float *a = leaves[0].as<float>() + row * s.d + column,
                    *b = leaves.back().as<float>() + row * s.d + column;
        if (s.view) {
          a = leaves[0].as<float>() + row * (2 * s.d + 5) + 1 + column;
          b = a + s.d + 2;
        }
        if (!gated) {
          bound.push_back(activation_bound(kind, *a, y));
        } else {
          const double up = std::abs(static_cast<double>(*b));
          bound.push_back(up * activation_bound(kind, *a, up > 0 ? y / up : 0) + 2 * kEps * std::abs(y) + kTiny);
        }
      }
      return Bounds{bound};
    };
  });
}

}  // namespace

void add_elementwise_cases(std::vector<Entry>& list) {
  for (const Op op : {Op::kAdd, Op::kMul}) {
    for (const std::string other : {"same", "row", "scalar"}) {
      if (op == Op::kAdd && other == "scalar") continue;  // of mul only
      add_binary(list, op, {.d = 37, .t = 5, .other = other}, true);
      if (other != "scalar") add_binary(list, op, {.d = 34, .t = 3, .other = other, .three = true}, true);
      for (const int d : {1, 15, 16, 17, 48, 1000, 20001}) {
        for (const int t : {1, 2, 4, 7, 8, 16, 33}) add_binary(list, op, {.d = d, .t = t, .other = other}, false);
      }
    }
    add_binary(list, op, {.d = 33, .t = 4, .view = true}, true);
  }
  add_binary(list, Op::kMul, {.d = 34, .t = 3, .other = "vector", .three = true}, true);
  for (const int d : {2, 32, 96, 1000}) {
    for (const int t : {1, 7, 33})
      add_binary(list, Op::kMul, {.d = d, .t = t, .other = "vector", .three = true}, false);
  }
  for (const Op op : {Op::kAdd, Op::kMul}) {
    add_binary(list, op, {.d = 34, .t = 3, .other = "middle", .three = true}, true);
    for (const int t : {1, 7, 33}) add_binary(list, op, {.d = 1000, .t = t, .other = "middle", .three = true}, false);
  }
  add_clamp(list, {.d = 37, .t = 3}, -1, 1, true);
  add_clamp(list, {.d = 33, .t = 4, .view = true, .wide = true}, -0.5f, 8, true);
  for (const int t : {1, 8, 33}) add_clamp(list, {.d = 1000, .t = t}, -0.25f, 0.25f, false);
  for (const float factor : {0.0f, -1.5f, 0.08838834764f, 1e30f}) {
    add_scale(list, {.d = 19, .t = 3}, factor, true);
    add_scale(list, {.d = 65, .t = 2, .view = true}, factor, false);
    for (const int t : {1, 8, 33}) add_scale(list, {.d = 1000, .t = t}, factor, false);
  }
  for (const UnaryKind kind : kKinds) {
    for (const bool gated : {false, true}) {
      add_unary(list, kind, {.d = 37, .t = 3}, gated, true);
      add_unary(list, kind, {.d = 64, .t = 2, .view = true, .wide = true}, gated, true);
      for (const int d : {1, 15, 16, 17, 500, 20001}) {
        for (const int t : {1, 2, 5, 33}) add_unary(list, kind, {.d = d, .t = t, .wide = t == 5}, gated, false);
      }
    }
  }
  add_limited_cases(list);
  add_xielu_cases(list);
}

TEST_CASE("add") { run_cases(Op::kAdd); }
TEST_CASE("mul") { run_cases(Op::kMul); }
TEST_CASE("scale") { run_cases(Op::kScale); }
TEST_CASE("clamp") { run_cases(Op::kClamp); }
TEST_CASE("unary") { run_cases(Op::kUnary); }
TEST_CASE("xielu") { run_cases(Op::kXielu); }
TEST_CASE("gated_activation") { run_cases(Op::kGatedActivation); }

}  // namespace infer::test
