// Cases of slice and concat, which move values without changing them.
#include <doctest/doctest.h>

#include "ggml-like/error.h"
#include "tests/conformance/case.h"

namespace infer::test {
namespace {

struct SliceShape {
  int heads, d, begin, count, t;
  bool view = false;  // of columns of a wider tensor
};

void add_slice(std::vector<Entry>& list, const SliceShape& s, bool quick) {
  std::string text = concat("h=", s.heads, " d=", s.d, " [", s.begin, ", +", s.count, ") t=", s.t);
  if (s.view) text += " view";
  add_case(list, Op::kSlice, text, quick, [=](Case& c, Random& random) {
    c.tokens = s.t;
    c.token_bucket = s.t + 2;
    const int width = s.heads * s.d + (s.view ? 9 : 0);
    c.leaves = {float_leaf({c.token_bucket, width}, RowKind::kTokens, s.t, random)};
    c.build = [=](Graph& g, const std::vector<Weight>& w) {
      ValueId x = g.weight(w[0]);
      if (s.view) x = g.view_columns(x, 4, s.heads * s.d);
      if (s.heads > 1) x = g.reshape(x, {g.value(x).desc.shape[0], s.heads, s.d});
      return std::vector{g.slice_columns(x, s.begin, s.count)};
    };
  });
}

void add_concat(std::vector<Entry>& list, int heads, int b_heads, int m, int n, int t, bool quick) {
  const std::string text = concat("h=", heads, "/", b_heads, " m=", m, " n=", n, " t=", t);
  add_case(list, Op::kConcat, text, quick, [=](Case& c, Random& random) {
    c.tokens = t;
    c.token_bucket = t + 2;
    // Columns of one tensor.
    const int left = heads * m, right = b_heads * n;
    c.leaves = {float_leaf({c.token_bucket, left + right + 3}, RowKind::kTokens, t, random)};
    c.build = [=](Graph& g, const std::vector<Weight>& w) {
      const ValueId x = g.weight(w[0]);
      const int64_t rows = g.value(x).desc.shape[0];
      return std::vector{g.concat_columns(g.reshape(g.view_columns(x, 1, left), {rows, heads, m}),
                                          g.reshape(g.view_columns(x, left + 2, right), {rows, b_heads, n}))};
    };
  });
}

}  // namespace

void add_column_cases(std::vector<Entry>& list) {
  add_slice(list, {.heads = 3, .d = 20, .begin = 0, .count = 13, .t = 5}, true);
  add_slice(list, {.heads = 4, .d = 24, .begin = 17, .count = 7, .t = 3, .view = true}, true);
  add_slice(list, {.heads = 1, .d = 40, .begin = 8, .count = 32, .t = 1}, true);
  add_slice(list, {.heads = 16, .d = 192, .begin = 128, .count = 64, .t = 70}, false);
  add_concat(list, 3, 3, 13, 7, 5, true);
  add_concat(list, 4, 1, 16, 9, 3, true);
  add_concat(list, 1, 1, 512, 64, 2, true);
  add_concat(list, 16, 1, 512, 64, 70, false);
}

TEST_CASE("slice") { run_cases(Op::kSlice); }
TEST_CASE("concat") { run_cases(Op::kConcat); }

}  // namespace infer::test
