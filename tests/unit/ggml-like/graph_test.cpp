// Every builder: the descriptor that it returns for a correct call, and an error that names the operation for each
// incorrect one.
#include "ggml-like/graph.h"

#include <doctest/doctest.h>

#include <deque>
#include <string>

#include "ggml-like/error.h"

using namespace infer;

namespace {

class Bench {
 public:
  Graph g{4, 2};

  const Weight& weight(const Shape& shape, DataType type = DataType::kF32, RowKind rows = RowKind::kFixed) {
    weights_.push_back({concat("w", weights_.size()), make_desc(type, shape, rows)});
    return weights_.back();
  }
  // A value of the shape, whose rows are tokens.
  ValueId x(const Shape& shape, DataType type = DataType::kF32, RowKind rows = RowKind::kTokens) {
    return g.weight(weight(shape, type, rows));
  }
  const TensorDesc& desc(ValueId id) const { return g.value(id).desc; }

 private:
  std::deque<Weight> weights_;
};

// Whether the call throws an error about a file that begins with the operation's name and ends with what was found.
template <typename F>
void refused(std::string_view op, const F& call) {
  CAPTURE(op);
  try {
    call();
    FAIL_CHECK("accepted");
  } catch (const Error& error) {
    const std::string text = error.what();
    CHECK(error.code() == ErrorCode::kInvalidFile);
    CAPTURE(text);
    CHECK(text.starts_with("[graph] " + std::string(op) + " in layer 7: "));
    CHECK(text.find(", found") != std::string::npos);
  }
}

}  // namespace

TEST_CASE("graph: matmuls") {
  Bench b;
  b.g.set_layer(7);
  const ValueId x = b.x({4, 256});
  const Weight &w = b.weight({10, 256}, DataType::kQ4_K), &bias = b.weight({10});
  const TensorDesc y = b.desc(b.g.matmul(x, w, &bias));
  CHECK(y.shape == Shape{4, 10});
  CHECK(y.rows == RowKind::kTokens);
  CHECK(y.contiguous());
  refused("matmul", [&] { b.g.matmul(x, b.weight({10, 255})); });
  refused("matmul", [&] { b.g.matmul(x, b.weight({256})); });
  refused("matmul", [&] { b.g.matmul(x, b.weight({10, 256}, DataType::kI32)); });
  refused("matmul", [&] { b.g.matmul(x, b.weight({10, 256}, DataType::kQ8_K)); });
  refused("matmul", [&] { b.g.matmul(b.x({4, 2, 128}), w); });
  refused("matmul", [&] { b.g.matmul(b.x({4, 256}, DataType::kF16), w); });
  refused("matmul", [&] { b.g.matmul(x, w, &b.weight({11})); });
  refused("matmul", [&] { b.g.matmul(x, w, &b.weight({10}, DataType::kF16)); });

  const ValueId ids = b.x({4, 2}, DataType::kI32), x3 = b.x({4, 2, 256});
  const Weight& e = b.weight({8, 10, 256}, DataType::kQ4_K);
  CHECK(b.desc(b.g.matmul_experts(x, e, ids)).shape == Shape{4, 2, 10});
  CHECK(b.desc(b.g.matmul_experts(x3, e, ids, &b.weight({8, 10}))).shape == Shape{4, 2, 10});
  refused("matmul_experts", [&] { b.g.matmul_experts(x, w, ids); });
  refused("matmul_experts", [&] { b.g.matmul_experts(x, b.weight({8, 10, 128}), ids); });
  refused("matmul_experts", [&] { b.g.matmul_experts(b.x({4, 3, 256}), e, ids); });
  refused("matmul_experts", [&] { b.g.matmul_experts(x, e, b.x({4, 2})); });
  refused("matmul_experts", [&] { b.g.matmul_experts(x, e, b.x({3, 2}, DataType::kI32)); });
  refused("matmul_experts", [&] { b.g.matmul_experts(x, e, ids, &b.weight({10})); });
  refused("matmul_experts", [&] { b.g.matmul_experts(b.g.view_columns(b.x({4, 300}), 0, 256), e, ids); });
}

TEST_CASE("graph: a weight's factor scales the result before the bias is added") {
  Bench b;
  b.g.set_layer(7);
  const float value = 0.25f;
  Weight factor = {"factor", make_desc(DataType::kF32, {1}), reinterpret_cast<const std::byte*>(&value)};
  Weight w = b.weight({10, 64}, DataType::kMXFP4);
  w.factor = &factor;
  b.g.matmul(b.x({4, 64}), w, &b.weight({10}));
  const std::vector<Node>& nodes = b.g.nodes();
  REQUIRE(nodes.size() == 3);
  CHECK(nodes[0].inputs[2] == kNoValue);
  CHECK(nodes[1].op == Op::kScale);
  CHECK(std::get<ScaleParams>(nodes[1].params).factor == value);
  CHECK(nodes[2].op == Op::kAdd);

  Weight experts = b.weight({3, 10, 64}, DataType::kMXFP4);
  experts.factor = &b.weight({3, 1, 1});
  const ValueId x = b.x({4, 64}), ids = b.x({4, 2}, DataType::kI32);
  CHECK(b.desc(b.g.matmul_experts(x, experts, ids)).shape == Shape{4, 2, 10});
  refused("matmul_experts", [&] { b.g.matmul_experts(x, experts, ids, &b.weight({3, 10})); });
  refused("matmul_experts", [&] { b.g.matmul_experts(b.x({4, 3, 64}), experts, kNoValue); });
  experts.factor = &b.weight({2, 1, 1});
  refused("matmul_experts", [&] { b.g.matmul_experts(x, experts, ids); });
}

TEST_CASE("graph: rows in and out") {
  Bench b;
  b.g.set_layer(7);
  const TensorDesc embedded = b.desc(b.g.embed(b.weight({100, 64}, DataType::kQ8_0)));
  CHECK(embedded.shape == Shape{4, 64});
  CHECK(embedded.rows == RowKind::kTokens);
  refused("embed", [&] { b.g.embed(b.weight({100})); });
  refused("embed", [&] { b.g.embed(b.weight({100, 64}, DataType::kI32)); });
  const ValueId x = b.x({4, 64});
  const TensorDesc selected = b.desc(b.g.select_rows(x));
  CHECK(selected.shape == Shape{2, 64});
  CHECK(selected.rows == RowKind::kOutputs);
  Graph hidden(4, 3, 2);
  const ValueId rows =
      hidden.view_logits_rows(hidden.select_rows(hidden.weight(b.weight({4, 64}, DataType::kF32, RowKind::kTokens))));
  CHECK(hidden.value(rows).desc.shape == Shape{2, 64});
  CHECK(hidden.value(rows).desc.rows == RowKind::kLogits);
  refused("select_rows", [&] { b.g.select_rows(b.g.select_rows(x)); });
  refused("select_rows", [&] { b.g.select_rows(b.x({4, 2, 32})); });
  const Graph::TopK top = b.g.top_k(b.g.select_rows(x), 5);
  CHECK(b.desc(top.ids).type == DataType::kI32);
  CHECK(b.desc(top.ids).shape == Shape{2, 5});
  CHECK(b.desc(top.values).shape == Shape{2, 5});
  CHECK(b.desc(top.log_sum_exp).shape == Shape{2, 1});
  refused("top_k", [&] { b.g.top_k(x, 65); });
  refused("top_k", [&] { b.g.top_k(x, 0); });
  refused("top_k", [&] { b.g.top_k(b.x({4, 2, 8}), 1); });
}

TEST_CASE("graph: norms and elementwise operations") {
  Bench b;
  b.g.set_layer(7);
  const ValueId x = b.x({4, 6}), x3 = b.x({4, 3, 6}), row = b.x({6}, DataType::kF32, RowKind::kFixed);
  CHECK(b.desc(b.g.rms_norm(x3, &b.weight({6}), 1e-5f)).shape == Shape{4, 3, 6});
  refused("rms_norm", [&] { b.g.rms_norm(x, &b.weight({5}), 1e-5f); });
  refused("rms_norm", [&] { b.g.rms_norm(x, &b.weight({6}, DataType::kF16), 1e-5f); });
  refused("rms_norm", [&] { b.g.rms_norm(row, nullptr, 1e-5f); });
  refused("layer_norm", [&] { b.g.layer_norm(x, &b.weight({5}), nullptr, 1e-5f); });
  refused("layer_norm", [&] { b.g.layer_norm(x, nullptr, &b.weight({5}), 1e-5f); });
  refused("layer_norm", [&] { b.g.layer_norm(b.x({4, 6}, DataType::kI32), nullptr, nullptr, 1e-5f); });

  CHECK(b.desc(b.g.add(x, x)).shape == Shape{4, 6});
  CHECK(b.desc(b.g.add(x3, row)).shape == Shape{4, 3, 6});
  CHECK(b.desc(b.g.mul(x, b.x({4, 1}))).shape == Shape{4, 6});
  refused("add", [&] { b.g.add(x, x3); });
  refused("add", [&] { b.g.add(x, b.x({4, 1})); });
  refused("add", [&] { b.g.add(x, b.x({4, 6}, DataType::kF32, RowKind::kOutputs)); });
  refused("mul", [&] { b.g.mul(x, b.x({4, 1}, DataType::kF32, RowKind::kOutputs)); });
  CHECK(b.desc(b.g.mul(x3, b.x({4, 3, 1}))).shape == Shape{4, 3, 6});
  refused("mul", [&] { b.g.mul(x3, b.x({4, 1})); });
  refused("mul", [&] { b.g.mul(row, b.x({1}, DataType::kF32, RowKind::kFixed)); });
  refused("clamp", [&] { b.g.clamp(b.x({4, 6}, DataType::kI32), 0, 1); });
  refused("clamp", [&] { b.g.clamp(x, 1, 0); });
  refused("mul", [&] { b.g.mul(x, b.x({4, 6}, DataType::kF16)); });
  refused("scale", [&] { b.g.scale(b.x({4, 6}, DataType::kI32), 2); });
  refused("unary", [&] { b.g.unary(b.x({4, 6}, DataType::kI32), UnaryKind::kSilu); });
  refused("gated_activation", [&] { b.g.gated_activation(x, row, UnaryKind::kSilu); });
  refused("xielu", [&] { b.g.xielu(b.x({4, 6}, DataType::kI32), {}); });

  const ValueId vector = b.x({4, 1, 6});
  CHECK(b.desc(b.g.add(x3, vector)).shape == Shape{4, 3, 6});
  CHECK(b.desc(b.g.mul(x3, vector)).shape == Shape{4, 3, 6});
  refused("add", [&] { b.g.add(vector, x3); });
  refused("add", [&] { b.g.add(x3, b.x({4, 1, 5})); });
  refused("add", [&] { b.g.add(x3, b.x({4, 1, 6}, DataType::kF32, RowKind::kOutputs)); });
  refused("gated_activation", [&] { b.g.gated_activation(x3, vector, UnaryKind::kSilu); });

  CHECK(b.desc(b.g.rms(x3)).shape == Shape{4, 3, 1});
  CHECK(b.desc(b.g.softmax(x3)).shape == Shape{4, 3, 6});
  CHECK(b.desc(b.g.sparsify(x, 1)).shape == Shape{4, 6});
  refused("rms", [&] { b.g.rms(row); });
  refused("softmax", [&] { b.g.softmax(b.x({4, 6}, DataType::kI32)); });
  refused("sparsify", [&] { b.g.sparsify(b.x({4, 1}), 1); });
}

TEST_CASE("graph: streams") {
  Bench b;
  b.g.set_layer(7);
  const ValueId x = b.x({4, 3, 6});
  CHECK(b.desc(b.g.mix_streams(x, b.x({4, 2, 3}))).shape == Shape{4, 2, 6});
  refused("mix_streams", [&] { b.g.mix_streams(x, b.x({4, 3, 2})); });
  refused("mix_streams", [&] { b.g.mix_streams(x, b.x({4, 3})); });
  refused("mix_streams", [&] { b.g.mix_streams(x, b.x({4, 2, 3}, DataType::kF32, RowKind::kOutputs)); });
}

TEST_CASE("graph: rope") {
  Bench b;
  b.g.set_layer(7);
  const ValueId table = b.g.rope_table({.n_dims = 8}, &b.weight({4}));
  CHECK(b.desc(table).shape == Shape{4, 4, 2});
  CHECK(b.desc(b.g.rope(b.x({4, 3, 10}), table, true)).shape == Shape{4, 3, 10});
  refused("rope_table", [&] { b.g.rope_table({.n_dims = 7}); });
  refused("rope_table", [&] { b.g.rope_table({.n_dims = 0}); });
  refused("rope_table", [&] { b.g.rope_table({.n_dims = 8, .freq_base = 0}); });
  CHECK(b.desc(b.g.rope_table({.n_dims = 8}, &b.weight({8}))).shape == Shape{4, 4, 2});  // uses the first half
  refused("rope_table", [&] { b.g.rope_table({.n_dims = 8}, &b.weight({3})); });
  CHECK(b.desc(b.g.position_factor({.scale = 1, .interval = 16})).shape == Shape{4, 1});
  refused("position_factor", [&] { b.g.position_factor({.scale = 1, .interval = 0}); });
  refused("position_factor", [&] { b.g.position_factor({.scale = 1, .offset = -1}); });
  refused("rope", [&] { b.g.rope(b.x({4, 3, 6}), table, true); });
  refused("rope", [&] { b.g.rope(b.x({4, 10}), table, true); });
  refused("rope", [&] { b.g.rope(b.x({4, 3, 10}), b.x({4, 8}), true); });
}

TEST_CASE("graph: attention") {
  Bench b;
  b.g.set_layer(7);
  CacheDesc cache;
  cache.n_kv_head = 2, cache.key_dim = 8, cache.value_dim = 6;
  const ValueId q = b.x({4, 6, 8}), k = b.x({4, 2, 8}), v = b.x({4, 2, 6});
  b.g.kv_store(k, v, cache);
  CHECK(b.g.nodes().back().cache.key_dim == 8);
  CHECK(b.desc(b.g.paged_attention(q, cache, {}, &b.weight({6}))).shape == Shape{4, 36});
  refused("kv_store", [&] { b.g.kv_store(v, v, cache); });
  refused("kv_store", [&] { b.g.kv_store(k, k, cache); });
  refused("kv_store", [&] { b.g.kv_store(b.x({4, 16}), v, cache); });
  refused("kv_store", [&] { b.g.kv_store(b.x({4, 2, 8}, DataType::kF32, RowKind::kFixed), v, cache); });
  refused("paged_attention", [&] { b.g.paged_attention(b.x({4, 5, 8}), cache, {}); });
  refused("paged_attention", [&] { b.g.paged_attention(b.x({4, 6, 7}), cache, {}); });
  refused("paged_attention", [&] { b.g.paged_attention(q, cache, {}, &b.weight({2})); });
  refused("paged_attention", [&] { b.g.paged_attention(q, CacheDesc{}, {}); });
}

TEST_CASE("graph: experts") {
  Bench b;
  b.g.set_layer(7);
  const ValueId logits = b.x({4, 8});
  const Graph::Route route = b.g.moe_route(logits, {.n_used = 3}, &b.weight({8}));
  CHECK(b.desc(route.ids).shape == Shape{4, 3});
  CHECK(b.desc(route.ids).type == DataType::kI32);
  CHECK(b.desc(route.weights).shape == Shape{4, 3});
  for (const MoeRouteParams& p :
       {MoeRouteParams{.n_used = 0}, MoeRouteParams{.n_used = 9}, MoeRouteParams{.n_used = 2, .n_groups = 3},
        MoeRouteParams{.n_used = 2, .n_groups = 0}, MoeRouteParams{.n_used = 2, .n_groups = 4, .groups_used = 5},
        MoeRouteParams{.n_used = 2, .n_groups = 4, .groups_used = 0},
        MoeRouteParams{.n_used = 3, .n_groups = 8, .groups_used = 2}}) {
    refused("moe_route", [&] { b.g.moe_route(logits, p); });
  }
  refused("moe_route", [&] { b.g.moe_route(logits, {.n_used = 3}, &b.weight({7})); });
  CHECK(b.desc(b.g.moe_combine(b.x({4, 3, 10}), route.weights)).shape == Shape{4, 10});
  refused("moe_combine", [&] { b.g.moe_combine(b.x({4, 2, 10}), route.weights); });
  refused("moe_combine", [&] { b.g.moe_combine(b.x({4, 10}), route.weights); });
  refused("moe_combine", [&] { b.g.moe_combine(b.x({4, 3, 10}), route.ids); });
}

TEST_CASE("graph: views keep the row stride of their parent") {
  Bench b;
  const ValueId x = b.g.scale(b.x({4, 20}), 1), part = b.g.view_columns(x, 3, 12);
  CHECK(b.desc(part).row_stride == 20);
  CHECK_FALSE(b.desc(part).contiguous());
  const ValueId heads = b.g.reshape(part, {4, 3, 4}), inner = b.g.view_columns(part, 2, 5);
  CHECK(b.desc(heads).row_stride == 20);
  CHECK(b.desc(inner).row_stride == 20);
  CHECK(b.g.root(heads) == x);
  CHECK(b.g.root(inner) == x);
  CHECK(b.g.value(part).offset == 3);
  try {
    b.g.reshape(part, {4, 13});
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("expected a tensor of shape [4, 13], found [4, 12]") != std::string::npos);
  }
}

TEST_CASE("graph: leaves, names and layers") {
  Bench b;
  const Weight& w = b.weight({4, 4});
  CHECK(b.g.weight(w) == b.g.weight(w));
  const ValueId x = b.x({4, 4});
  b.g.set_layer(3);
  const ValueId y = b.g.name(b.g.scale(x, 2), "doubled");
  CHECK(b.g.find("doubled") == y);
  CHECK(b.g.find("halved") == kNoValue);
  CHECK(b.g.nodes().back().layer == 3);
  CHECK(b.g.value(y).producer == 0);
  b.g.mark_output(y);
  CHECK(b.g.marked_outputs() == std::vector<ValueId>{y});
  CHECK(b.g.token_bucket() == 4);
  CHECK(b.g.output_bucket() == 2);
}
