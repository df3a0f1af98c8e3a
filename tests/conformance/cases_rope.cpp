// Cases of rope_table, rope and position_factor.
#include <doctest/doctest.h>

#include <cmath>

#include "ggml-like/error.h"
#include "tests/conformance/case.h"

namespace infer::test {
namespace {

RopeTableParams yarn(int n_dims) {
  return {.n_dims = n_dims,
          .freq_base = 10000,
          .freq_scale = 0.25f,
          .ext_factor = 1,
          .attn_factor = 1,
          .beta_fast = 32,
          .beta_slow = 1,
          .original_context = 4096};
}

std::vector<int32_t> far_positions(int t, Random& random) {
  std::vector<int32_t> positions;
  for (int i = 0; i < t; ++i) positions.push_back(static_cast<int32_t>(random.next() % 200000));
  positions[0] = 0;
  return positions;
}

void add_table(std::vector<Entry>& list, const std::string& kind, int n_dims, int t, bool factors, bool quick) {
  add_case(list, Op::kRopeTable, concat(kind, " n_dims=", n_dims, " t=", t, factors ? " factors" : ""), quick,
           [=](Case& c, Random& random) {
             c.tokens = t;
             c.token_bucket = t + 1;
             c.positions = far_positions(t, random);
             RopeTableParams params = kind == "yarn" ? yarn(n_dims) : RopeTableParams{.n_dims = n_dims};
             if (kind == "inverse") params = yarn(n_dims), params.inverse = true;
             if (kind == "period") params.period = 128;
             if (kind == "linear") params.freq_scale = 0.125f, params.freq_base = 500000;
             if (factors) {
               c.leaves.push_back(float_leaf({n_dims / 2}, RowKind::kFixed, 0, random));
               for (int i = 0; i < n_dims / 2; ++i)
                 c.leaves[0].as<float>()[i] = 1 + std::abs(c.leaves[0].as<float>()[i]);
             }
             c.build = [=](Graph& g, const std::vector<Weight>& w) {
               return std::vector{g.rope_table(params, factors ? &w[0] : nullptr)};
             };
             // Angles are computed in double; accelerators may compute them in any way that gives these floats to
             // within two units in the last place of 1.
             c.bounds = [=](const std::vector<Output>& ref) {
               return Bounds{std::vector<double>(static_cast<size_t>(ref[0].elements()), 4 * kEps)};
             };
           });
}

void add_rope(std::vector<Entry>& list, int heads, int head_dim, int n_dims, int t, bool interleaved, bool view,
              bool quick) {
  std::string text = concat("heads=", heads, " dim=", head_dim, " n_dims=", n_dims, " t=", t);
  text += interleaved ? " interleaved" : " halves";
  if (view) text += " view";
  add_case(list, Op::kRope, text, quick, [=](Case& c, Random& random) {
    c.tokens = t;
    c.token_bucket = t + 1;
    const int values = heads * head_dim, width = values + (view ? 13 : 0), begin = view ? 6 : 0;
    c.leaves = {float_leaf({c.token_bucket, width}, RowKind::kTokens, t, random),
                float_leaf({c.token_bucket, n_dims / 2, 2}, RowKind::kTokens, t, random)};
    for (int64_t i = 0; i < int64_t{t} * n_dims / 2; ++i) {
      const double cosine = random.uniform() * 2 - 1;
      c.leaves[1].as<float>()[2 * i] = static_cast<float>(cosine);
      c.leaves[1].as<float>()[2 * i + 1] = static_cast<float>(std::sqrt(1 - cosine * cosine));
    }
    c.build = [=](Graph& g, const std::vector<Weight>& w) {
      ValueId x = g.weight(w[0]);
      if (view) x = g.view_columns(x, begin, values);
      x = g.reshape(x, {g.value(x).desc.shape[0], heads, head_dim});
      return std::vector{g.rope(x, g.weight(w[1]), interleaved)};
    };
    const std::vector<Leaf> leaves = c.leaves;
    // Two products, one of which is rounded, and a rounding of the sum; |cos| and |sin| are at most 1.
    c.bounds = [=](const std::vector<Output>& ref) {
      std::vector<double> bound;
      for (int64_t i = 0; i < ref[0].elements(); ++i) {
        const int64_t row = i / values;
        const int at = static_cast<int>(i % head_dim), head = static_cast<int>(i % values / head_dim);
        const float* x = leaves[0].as<float>() + row * width + begin + head * head_dim;
        const int pair = interleaved ? at ^ 1 : at < n_dims / 2 ? at + n_dims / 2 : at - n_dims / 2;
        bound.push_back(at >= n_dims ? 0 : 3 * kEps * (std::abs(x[at]) + std::abs(x[pair])) + kTiny);
      }
      return Bounds{bound};
    };
  });
}

void add_position_factor(std::vector<Entry>& list, const PositionFactorParams& params, int t, bool quick) {
  const std::string text =
      concat("scale=", params.scale, " interval=", params.interval, " offset=", params.offset, " t=", t);
  add_case(list, Op::kPositionFactor, text, quick, [=](Case& c, Random& random) {
    c.tokens = t;
    c.token_bucket = t + 2;
    c.positions = far_positions(t, random);
    c.build = [=](Graph& g, const std::vector<Weight>&) { return std::vector{g.position_factor(params)}; };
    // The logarithm is a sum of two numbers with errors of 3e-7; then come a product and a sum.
    c.bounds = [=](const std::vector<Output>& ref) {
      std::vector<double> bound;
      for (int64_t i = 0; i < ref[0].elements(); ++i) bound.push_back((3e-7 + 4 * kEps) * ref[0].floats()[i]);
      return Bounds{bound};
    };
  });
}

}  // namespace

void add_rope_cases(std::vector<Entry>& list) {
  add_table(list, "inverse", 64, 5, false, true);
  add_table(list, "period", 16, 7, false, true);
  for (const std::string kind : {"plain", "linear", "yarn"}) {
    for (const bool factors : {false, true}) {
      add_table(list, kind, 64, 5, factors, true);
      for (const int n_dims : {2, 20, 128}) {
        for (const int t : {1, 33}) add_table(list, kind, n_dims, t, factors, false);
      }
    }
  }
  for (const bool interleaved : {false, true}) {
    add_rope(list, 3, 20, 20, 3, interleaved, false, true);
    add_rope(list, 2, 64, 32, 5, interleaved, true, true);
    for (const int head_dim : {2, 8, 36, 80, 128}) {
      for (const int n_dims : {2, 8, 36, 64, 128}) {
        for (const int t : {1, 4, 33}) {
          if (n_dims <= head_dim) add_rope(list, 5, head_dim, n_dims, t, interleaved, t == 4, false);
        }
      }
    }
  }
  add_position_factor(list, {.scale = 0.1f, .interval = 8192, .offset = 1}, 7, true);
  add_position_factor(list, {.scale = 0.3f, .interval = 16}, 33, true);
  add_position_factor(list, {.scale = 2, .interval = 1, .offset = 3}, 65, false);
}

TEST_CASE("position_factor") { run_cases(Op::kPositionFactor); }
TEST_CASE("rope_table") { run_cases(Op::kRopeTable); }
TEST_CASE("rope") { run_cases(Op::kRope); }

}  // namespace infer::test
