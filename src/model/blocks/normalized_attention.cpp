#include "src/model/blocks/normalized_attention.h"

namespace infer {
namespace {

constexpr WeightRole kNormalizedRole = WeightRole::kAttention;

AttentionWeights declare_queries(WeightSet& weights, const ModelConfig& config, int layer) {
  if (weights.has(layer, "attn_qkv.weight")) return declare_joined_attention(weights, config, layer);
  const int64_t n_head = config.layers[layer].n_head, d = config.n_embd;
  AttentionWeights w;
  w.q = declare_linear(weights, layer, kNormalizedRole, "attn_q", n_head * config.key_dim_of(layer), d);
  w.out = declare_linear(weights, layer, kNormalizedRole, "attn_output", d, n_head * config.value_dim_of(layer));
  for (const char* unused : {"attn_k.weight", "attn_k.bias", "attn_v.weight", "attn_v.bias"}) {
    weights.ignore(layer, unused);
  }
  return w;
}

AttentionWeights declare_queries_and_keys(WeightSet& weights, const ModelConfig& config, int layer) {
  const LayerConfig& l = config.layers[layer];
  const int64_t d = config.n_embd, key_dim = config.key_dim_of(layer);
  AttentionWeights w;
  w.q = declare_linear(weights, layer, kNormalizedRole, "attn_q", l.n_head * key_dim, d);
  w.k = declare_linear(weights, layer, kNormalizedRole, "attn_k", l.n_kv_head * key_dim, d);
  w.out = declare_linear(weights, layer, kNormalizedRole, "attn_output", d, l.n_head * key_dim);
  return w;
}

ValueId project_queries(Graph& graph, ValueId x, const AttentionWeights& w, const ModelConfig& config, int layer) {
  const int64_t key_dim = config.key_dim_of(layer), n_q = config.layers[layer].n_head * key_dim;
  const ValueId q = w.qkv.weight ? graph.view_columns(linear(graph, x, w.qkv), 0, n_q) : linear(graph, x, w.q);
  return split_heads(graph, q, key_dim);
}

}  // namespace

NormalizedAttentionWeights declare_normalized_attention(WeightSet& weights, const ModelConfig& config, int layer) {
  NormalizedAttentionWeights w;
  w.q_norm = declare_norm(weights, layer, "attn_q_norm", config.key_dim_of(layer));
  if (config.layers[layer].cache_layer >= 0) {
    w.heads = declare_queries(weights, config, layer);
    weights.ignore(layer, "attn_k_norm.weight");
    return w;
  }
  const bool has_values = weights.has(layer, "attn_qkv.weight") || weights.has(layer, "attn_v.weight");
  w.heads =
      has_values ? declare_joined_attention(weights, config, layer) : declare_queries_and_keys(weights, config, layer);
  w.k_norm = declare_norm(weights, layer, "attn_k_norm", config.key_dim_of(layer));
  return w;
}

ValueId normalized_attention(Graph& graph, ValueId x, const NormalizedAttentionWeights& w, const ModelConfig& config,
                             int layer, const WindowTables& tables, const CacheDesc& cache) {
  const int window = config.layers[layer].window;
  const ValueId table = window > 0 ? tables.window : tables.full;
  const AttentionParams params = {.scale = 1, .window = window};
  if (!w.k_norm) {
    const ValueId q = graph.rms_norm(project_queries(graph, x, w.heads, config, layer), w.q_norm, config.norm_eps);
    return graph.paged_attention(rope_neox(graph, q, table), cache, params);
  }
  Heads heads = project_heads(graph, x, w.heads, config, layer);
  rms_norm_heads(graph, heads, w.q_norm, w.k_norm, config.norm_eps);
  heads.v = graph.rms_norm(heads.v, nullptr, config.norm_eps);
  rope_neox(graph, heads, table);
  return attention(graph, heads, cache, params);
}

}  // namespace infer
