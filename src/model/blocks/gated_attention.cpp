#include "src/model/blocks/gated_attention.h"

#include "ggml-like/error.h"
#include "ggml-like/message.h"

namespace infer {

GatedAttentionWeights declare_gated_attention(WeightSet& weights, const ModelConfig& config, int layer) {
  const WeightRole role = WeightRole::kAttention;
  const LayerConfig& l = config.layers[layer];
  const int64_t d = config.n_embd, key_dim = config.key_dim;
  if (config.value_dim != config.key_dim) {
    throw Error(ErrorCode::kUnsupported,
                expected_found("model", concat("key ", config.architecture, ".attention.value_length"),
                               concat(config.key_dim, ", that of keys"), config.value_dim));
  }
  GatedAttentionWeights w;
  const int64_t n_q = 2 * l.n_head * key_dim, n_kv = l.n_kv_head * key_dim;
  if (weights.has(layer, "attn_qkv.weight")) {
    w.qkv = declare_linear(weights, layer, role, "attn_qkv", n_q + 2 * n_kv, d);
  } else {
    w.q = declare_linear(weights, layer, role, "attn_q", n_q, d);
    w.k = declare_linear(weights, layer, role, "attn_k", n_kv, d);
    w.v = declare_linear(weights, layer, role, "attn_v", n_kv, d);
  }
  w.out = declare_linear(weights, layer, role, "attn_output", d, l.n_head * key_dim);
  w.q_norm = declare_norm(weights, layer, "attn_q_norm", key_dim);
  w.k_norm = declare_norm(weights, layer, "attn_k_norm", key_dim);
  return w;
}

GatedHeads project_gated_heads(Graph& g, ValueId x, const GatedAttentionWeights& w, const ModelConfig& config,
                               int layer, ValueId rope_table) {
  const int64_t d = config.key_dim;
  ValueId both, k, v;  // [n_tokens, 2 * n_head * key_dim], twice [n_tokens, n_kv_head * key_dim]
  if (w.qkv.weight) {
    const int64_t n_kv = config.layers[layer].n_kv_head * d, n_q = w.qkv.weight->desc.shape[0] - 2 * n_kv;
    const ValueId qkv = linear(g, x, w.qkv);
    both = g.view_columns(qkv, 0, n_q);
    k = g.view_columns(qkv, n_q, n_kv);
    v = g.view_columns(qkv, n_q + n_kv, n_kv);
  } else {
    both = linear(g, x, w.q);
    k = linear(g, x, w.k);
    v = linear(g, x, w.v);
  }
  const ValueId gate = slice_groups(g, both, 2 * d, d, d);  // [n_tokens, n_head * key_dim]
  Heads heads = {split_heads(g, slice_groups(g, both, 2 * d, 0, d), d), split_heads(g, k, d), split_heads(g, v, d)};
  rms_norm_heads(g, heads, w.q_norm, w.k_norm, config.norm_eps);
  rope_neox(g, heads, rope_table);
  return {heads, gate};
}

ValueId gated_attention(Graph& g, ValueId x, const GatedAttentionWeights& w, const ModelConfig& config, int layer,
                        ValueId rope_table, const CacheDesc& cache, float scale) {
  const GatedHeads in = project_gated_heads(g, x, w, config, layer, rope_table);
  const ValueId y = attention(g, in.heads, cache, {.scale = scale});  // [n_tokens, n_head * key_dim]
  return g.gated_activation(in.gate, y, UnaryKind::kSigmoid);
}

ValueId gated_attention_to_selected(Graph& g, ValueId x, const GatedAttentionWeights& w,
                                    const NormalizedIndexerWeights& indexer, const ModelConfig& config, int layer,
                                    ValueId rope_table, const SelectedCaches& caches, float scale) {
  const int stride = caches.index.stride;
  ValueId blocks;  // blocks of `stride` positions, [n_tokens, 1, count]
  if (stride == 1) {
    blocks = select_positions(g, x, indexer, config, rope_table, caches.index);
  } else {
    RopeTableParams rope = config.rope;
    rope.period = stride;
    blocks = select_blocks_by_mean(g, x, indexer, config, rope_table, g.rope_table(rope), caches.index, caches.state);
  }
  const GatedHeads in = project_gated_heads(g, x, w, config, layer, rope_table);
  g.kv_store(in.heads.k, in.heads.v, caches.kv);
  const ValueId y = g.sparse_attention(in.heads.q, blocks, caches.kv, {.scale = scale, .block = stride}).out;
  return g.gated_activation(in.gate, y, UnaryKind::kSigmoid);
}

}  // namespace infer
