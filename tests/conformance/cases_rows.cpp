// Cases of embed, step_hidden, select_rows and top_k.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "ggml-like/error.h"
#include "tests/conformance/case.h"
#include "tests/conformance/weights.h"

namespace infer::test {
namespace {

void add_embed(std::vector<Entry>& list, const TypeTraits& t, int vocab, int d, int tokens, WeightData data,
               bool quick) {
  const DataType type = t.type;
  add_case(list, Op::kEmbed, concat(t.name, " v=", vocab, " d=", d, " t=", tokens, " ", name_of(data)), quick,
           [=](Case& c, Random& random) {
             c.tokens = tokens;
             c.token_bucket = tokens + 2;
             for (int i = 0; i < tokens; ++i) c.token_ids.push_back(static_cast<int32_t>(random.next() % vocab));
             c.token_ids.back() = vocab - 1;
             c.leaves.push_back(make_weights(type, {vocab, d}, data, random));
             c.build = [](Graph& g, const std::vector<Weight>& w) { return std::vector{g.embed(w[0])}; };
           });
}

// Indexed by position, which is not the row's place in the step.
void add_embed_positions(std::vector<Entry>& list, DataType type, int n, int d, const std::vector<int32_t>& positions,
                         bool quick) {
  std::string text = concat(traits(type).name, " n=", n, " d=", d, " positions=");
  for (size_t i = 0; i < positions.size(); ++i) text += concat(i ? "," : "", positions[i]);
  add_case(list, Op::kEmbed, text, quick, [=](Case& c, Random& random) {
    c.tokens = static_cast<int>(positions.size());
    c.token_bucket = c.tokens + 2;
    c.positions = positions;
    c.token_ids.assign(positions.size(), n - 1);
    c.leaves.push_back(make_weights(type, {n, d}, WeightData::kFloats, random));
    c.build = [](Graph& g, const std::vector<Weight>& w) { return std::vector{g.embed(w[0], RowsBy::kPosition)}; };
  });
}

void add_step_hidden(std::vector<Entry>& list, int d, int tokens, bool quick) {
  add_case(list, Op::kStepHidden, concat("d=", d, " t=", tokens), quick, [=](Case& c, Random& random) {
    c.tokens = tokens;
    c.token_bucket = tokens + 2;
    for (int t = 0; t < tokens; ++t) {
      std::vector<float>& row = c.hidden.emplace_back();
      for (int i = 0; i < d; ++i) row.push_back(random.normal());
    }
    c.hidden.back().back() = -0.0f;
    c.build = [=](Graph& g, const std::vector<Weight>&) { return std::vector{g.step_hidden(d)}; };
  });
}

void add_select(std::vector<Entry>& list, int d, int tokens, const std::vector<int>& rows, bool view, bool quick) {
  std::string text = concat("d=", d, " t=", tokens, " rows=");
  for (size_t i = 0; i < rows.size(); ++i) text += concat(i ? "," : "", rows[i]);
  add_case(list, Op::kSelectRows, text + (view ? " view" : ""), quick, [=](Case& c, Random& random) {
    c.tokens = tokens;
    c.token_bucket = tokens + 1;
    c.output_rows = rows;
    c.output_bucket = static_cast<int>(rows.size()) + 1;
    c.rows_alone = false;
    const int extra = view ? 5 : 0;
    c.leaves.push_back(float_leaf({c.token_bucket, d + extra}, RowKind::kTokens, tokens, random));
    c.build = [=](Graph& g, const std::vector<Weight>& w) {
      const ValueId x = g.weight(w[0]);
      return std::vector{g.select_rows(view ? g.view_columns(x, 3, d) : x)};
    };
  });
}

void add_top_k(std::vector<Entry>& list, int v, int k, int rows, const std::string& data, bool quick) {
  add_case(list, Op::kTopK, concat("v=", v, " k=", k, " rows=", rows, " ", data), quick, [=](Case& c, Random& random) {
    c.tokens = c.token_bucket = rows;
    for (int r = 0; r < rows; ++r) c.output_rows.push_back(r);
    c.output_bucket = rows + 1;
    Leaf x = float_leaf({c.output_bucket, v}, RowKind::kOutputs, rows, random, data == "large" ? 1e4f : 5);
    for (int64_t i = 0; i < int64_t{rows} * v; ++i) {
      float& value = x.as<float>()[i];
      if (data == "ties") value = std::floor(value);
      if (data == "masked" && random.uniform() < 0.7) value = -INFINITY;
      if (data == "nan" && random.uniform() < 0.2) value = NAN;
      if (data == "none") value = -INFINITY;
    }
    for (int r = 0; data == "masked" && r < rows; ++r) x.as<float>()[int64_t{r} * v + v / 2] = 1;
    c.leaves.push_back(std::move(x));
    c.build = [=](Graph& g, const std::vector<Weight>& w) {
      const Graph::TopK top = g.top_k(g.weight(w[0]), k);
      return std::vector{top.ids, top.values, top.log_sum_exp};
    };
    // log(sum): relative error of the sum of positive terms (exp 2e-7, additions in 16 lanes and a tree), and one
    // rounding of the result and of each difference from the maximum.
    c.bounds = [=](const std::vector<Output>& ref) {
      std::vector<double> lse;
      for (int64_t r = 0; r < ref[2].rows; ++r) {
        lse.push_back(2e-7 + (v / 16 + 6 + 30) * kEps + 2 * kEps * std::abs(ref[2].floats()[r]) + kTiny);
      }
      return Bounds{{}, {}, lse};
    };
  });
}

}  // namespace

void add_row_cases(std::vector<Entry>& list) {
  for (const TypeTraits& t : all_types()) {
    if (!t.to_float) continue;
    const int b = static_cast<int>(t.block_size);
    add_embed(list, t, 7, b == 1 ? 37 : b, 3, WeightData::kFloats, true);
    add_embed(list, t, 5, 3 * b, 9, WeightData::kBits, true);
    for (const int tokens : {1, 2, 8, 33}) {
      for (const WeightData data : all_weight_data(t.type)) {
        add_embed(list, t, 40, b == 1 ? 300 : 512, tokens, data, false);
      }
    }
  }
  add_embed_positions(list, DataType::kF32, 12, 37, {4, 5, 6, 11}, true);
  add_embed_positions(list, DataType::kQ8_0, 9, 64, {0}, true);
  for (const DataType type : {DataType::kF32, DataType::kF16, DataType::kQ8_0}) {
    add_embed_positions(list, type, 70, 320, {0, 33, 34, 69}, false);
  }
  add_step_hidden(list, 5, 1, true);
  add_step_hidden(list, 67, 4, true);
  add_step_hidden(list, 320, 33, false);
  add_select(list, 5, 4, {3}, false, true);
  add_select(list, 17, 9, {0, 2, 7, 8}, true, true);
  add_select(list, 64, 33, {0, 31, 32}, false, false);
  for (const std::string data : {"plain", "ties", "masked", "large", "nan", "none"}) {
    add_top_k(list, 77, 5, 2, data, true);
    for (const int v : {1, 15, 16, 17, 300, 4097, 32003}) {
      for (const int k : {1, 2, 40}) {
        if (k <= v) add_top_k(list, v, k, 3, data, false);
      }
    }
  }
}

TEST_CASE("embed") { run_cases(Op::kEmbed); }
TEST_CASE("step_hidden") { run_cases(Op::kStepHidden); }
TEST_CASE("select_rows") { run_cases(Op::kSelectRows); }
TEST_CASE("top_k") { run_cases(Op::kTopK); }

}  // namespace infer::test
