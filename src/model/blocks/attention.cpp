#include "src/model/blocks/attention.h"

#include <cmath>

namespace infer {
namespace {

// Applies `f` to x [n_tokens, n_head, head_dim] reshaped to [n_tokens, n_head * head_dim].
template <typename F>
ValueId with_rows(Graph& graph, ValueId x, F f) {
  const Shape shape = graph.value(x).desc.shape;
  return graph.reshape(f(graph.reshape(x, {shape[0], shape[1] * shape[2]})), shape);
}

}  // namespace

AttentionWeights declare_attention(WeightSet& weights, const ModelConfig& config, int layer) {
  const WeightRole role = WeightRole::kAttention;
  const LayerConfig& l = config.layers[layer];
  const int64_t d = config.n_embd, key_dim = config.key_dim_of(layer), value_dim = config.value_dim_of(layer);
  AttentionWeights w;
  w.q = declare_linear(weights, layer, role, "attn_q", l.n_head * key_dim, d);
  w.k = declare_linear(weights, layer, role, "attn_k", l.n_kv_head * key_dim, d);
  w.v = declare_linear(weights, layer, role, "attn_v", l.n_kv_head * value_dim, d);
  w.out = declare_linear(weights, layer, role, "attn_output", d, l.n_head * value_dim);
  weights.ignore(layer, "attn_rot_embd.weight");  // a table in some old files; the rotation is computed instead
  return w;
}

AttentionWeights declare_joined_attention(WeightSet& weights, const ModelConfig& config, int layer) {
  if (!weights.has(layer, "attn_qkv.weight")) return declare_attention(weights, config, layer);
  const WeightRole role = WeightRole::kAttention;
  const LayerConfig& l = config.layers[layer];
  const int64_t d = config.n_embd, key_dim = config.key_dim_of(layer), value_dim = config.value_dim_of(layer);
  AttentionWeights w;
  w.qkv =
      declare_linear(weights, layer, role, "attn_qkv", (l.n_head + l.n_kv_head) * key_dim + l.n_kv_head * value_dim, d);
  w.out = declare_linear(weights, layer, role, "attn_output", d, l.n_head * value_dim);
  return w;
}

Heads project_heads(Graph& graph, ValueId x, const AttentionWeights& w, const ModelConfig& config, int layer) {
  const LayerConfig& l = config.layers[layer];
  const int64_t key_dim = config.key_dim_of(layer), value_dim = config.value_dim_of(layer);
  Heads heads;
  if (w.qkv.weight) {
    const int64_t n_q = l.n_head * key_dim, n_k = l.n_kv_head * key_dim, n_v = l.n_kv_head * value_dim;
    const ValueId qkv = linear(graph, x, w.qkv);  // [n_tokens, n_q + n_k + n_v]
    heads = {graph.view_columns(qkv, 0, n_q), graph.view_columns(qkv, n_q, n_k),
             graph.view_columns(qkv, n_q + n_k, n_v)};
  } else {
    heads = {linear(graph, x, w.q), linear(graph, x, w.k), kNoValue};
    heads.v = w.v.weight ? linear(graph, x, w.v) : heads.k;
  }
  return {split_heads(graph, heads.q, key_dim), split_heads(graph, heads.k, key_dim),
          split_heads(graph, heads.v, value_dim)};
}

ValueId split_heads(Graph& graph, ValueId x, int64_t head_dim) {
  const Shape& shape = graph.value(x).desc.shape;
  return graph.reshape(x, {shape[0], shape[1] / head_dim, head_dim});
}

ValueId rope_interleaved(Graph& graph, ValueId x, ValueId table) { return graph.rope(x, table, /*interleaved=*/true); }

ValueId rope_neox(Graph& graph, ValueId x, ValueId table) { return graph.rope(x, table, /*interleaved=*/false); }

void rope_interleaved(Graph& graph, Heads& heads, ValueId table) {
  heads.q = rope_interleaved(graph, heads.q, table);
  heads.k = rope_interleaved(graph, heads.k, table);
}

void rope_neox(Graph& graph, Heads& heads, ValueId table) {
  heads.q = rope_neox(graph, heads.q, table);
  heads.k = rope_neox(graph, heads.k, table);
}

void rms_norm_heads(Graph& graph, Heads& heads, const Weight* q_norm, const Weight* k_norm, float eps) {
  heads.q = graph.rms_norm(heads.q, q_norm, eps);
  heads.k = graph.rms_norm(heads.k, k_norm, eps);
}

void rms_norm_each_head(Graph& graph, Heads& heads, const Weight* q_norm, const Weight* k_norm, float eps) {
  const auto norm = [&](ValueId x, const Weight* weight) {
    return with_rows(graph, graph.rms_norm(x, nullptr, eps),
                     [&](ValueId rows) { return graph.mul(rows, graph.weight(*weight)); });
  };
  heads.q = norm(heads.q, q_norm);
  heads.k = norm(heads.k, k_norm);
}

void rms_norm_rows(Graph& graph, Heads& heads, const Weight* q_norm, const Weight* k_norm, float eps) {
  heads.q = with_rows(graph, heads.q, [&](ValueId q) { return graph.rms_norm(q, q_norm, eps); });
  heads.k = with_rows(graph, heads.k, [&](ValueId k) { return graph.rms_norm(k, k_norm, eps); });
}

void layer_norm_rows(Graph& graph, Heads& heads, const LayerNorm& q_norm, const LayerNorm& k_norm, float eps) {
  heads.q = with_rows(graph, heads.q, [&](ValueId q) { return layer_norm(graph, q, q_norm, eps); });
  heads.k = with_rows(graph, heads.k, [&](ValueId k) { return layer_norm(graph, k, k_norm, eps); });
}

HeadNorms declare_head_norms(WeightSet& weights, const ModelConfig& config, int layer) {
  const LayerConfig& l = config.layers[layer];
  const WeightRole role = WeightRole::kNorm;
  return {weights.optional(layer, role, "attn_q_norm.weight", {l.n_head * config.key_dim}),
          weights.optional(layer, role, "attn_k_norm.weight", {l.n_kv_head * config.key_dim})};
}

void layer_norm_heads(Graph& graph, Heads& heads, const HeadNorms& w, float eps) {
  const auto normalized = [&](ValueId x, const Weight* weight) {
    if (!weight) return x;
    x = graph.layer_norm(x, nullptr, nullptr, eps);
    return with_rows(graph, x, [&](ValueId rows) { return graph.mul(rows, graph.weight(*weight)); });
  };
  heads.q = normalized(heads.q, w.q);
  heads.k = normalized(heads.k, w.k);
}

void clamp_heads(Graph& graph, Heads& heads, float limit) {
  if (limit == 0) return;
  for (ValueId* x : {&heads.q, &heads.k, &heads.v}) *x = graph.clamp(*x, -limit, limit);
}

ValueId scale_by_position(Graph& graph, ValueId q, ValueId factor) {
  return with_rows(graph, q, [&](ValueId rows) { return graph.mul(rows, factor); });
}

Linear declare_attention_gate(WeightSet& weights, const ModelConfig& config, int layer, int64_t n_out) {
  return {weights.optional(layer, WeightRole::kAttention, "attn_gate.weight", {n_out, config.n_embd})};
}

ValueId gate_attention(Graph& graph, ValueId h, ValueId x, const Linear& gate, UnaryKind f) {
  if (!gate.weight) return h;
  const Shape shape = graph.value(h).desc.shape;
  const int64_t n_gates = gate.weight->desc.shape[0];
  const ValueId gates = graph.unary(linear(graph, x, gate), f);  // [n_tokens, n_gates]
  if (n_gates == shape[1]) return graph.mul(h, gates);
  const ValueId by_head = graph.reshape(h, {shape[0], n_gates, shape[1] / n_gates});
  return graph.reshape(graph.mul(by_head, graph.reshape(gates, {shape[0], n_gates, 1})), shape);
}

float attention_scale(const ModelConfig& config) { return 1 / std::sqrt(static_cast<float>(config.key_dim)); }

ValueId attention(Graph& graph, ValueId q, ValueId k, ValueId v, const CacheDesc& cache,
                  const AttentionParams& params) {
  graph.kv_store(k, v, cache);
  return graph.paged_attention(q, cache, params);
}

ValueId attention(Graph& graph, const Heads& heads, const CacheDesc& cache, const AttentionParams& params) {
  return attention(graph, heads.q, heads.k, heads.v, cache, params);
}

ValueId attention_with_sinks(Graph& graph, const Heads& heads, const CacheDesc& cache, const AttentionParams& params,
                             const Weight& sinks) {
  graph.kv_store(heads.k, heads.v, cache);
  return graph.paged_attention(heads.q, cache, params, &sinks);
}

}  // namespace infer
