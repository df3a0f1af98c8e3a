#include "src/model/blocks/latent_attention.h"

#include <cmath>

#include "src/model/blocks/attention.h"

namespace infer {
namespace {

// The unrotated and the rotated dimensions of the heads.
struct Parts {
  ValueId nope, rot;  // [n_tokens, n_head, n_nope], [n_tokens, n_head, n_rot]
};

ValueId as_rows(Graph& graph, ValueId heads) {
  const Shape& shape = graph.value(heads).desc.shape;
  return graph.reshape(heads, {shape[0], shape.row_elements()});
}

ValueId rotated(Graph& graph, ValueId x, const LatentPositions& positions) {
  return positions.table == kNoValue ? x : graph.rope(x, positions.table, positions.interleaved);
}

// q [n_tokens, n_head * key_dim].
Parts query_parts(Graph& graph, ValueId q, const ModelConfig& config, const LatentPositions& positions) {
  const int64_t n_rot = config.rope.n_dims, n_nope = config.latent.key_dim - n_rot;
  if (positions.query_factor != kNoValue) q = graph.mul(q, positions.query_factor);
  q = split_heads(graph, q, config.latent.key_dim);
  return {graph.slice_columns(q, 0, n_nope), rotated(graph, graph.slice_columns(q, n_nope, n_rot), positions)};
}

// x [n_tokens, n_embd] -> the compressed vector and the rotated dimensions, as one head.
Parts compressed_parts(Graph& graph, ValueId x, const LatentAttentionWeights& w, const ModelConfig& config,
                       const LatentPositions& positions) {
  const int64_t kv_rank = config.latent.kv_rank, n_rot = config.rope.n_dims;
  const ValueId kv = linear(graph, x, w.kv_a);  // [n_tokens, kv_rank + n_rot]
  const ValueId vector = graph.rms_norm(graph.view_columns(kv, 0, kv_rank), w.kv_a_norm, config.norm_eps);
  const ValueId rot = split_heads(graph, graph.view_columns(kv, kv_rank, n_rot), n_rot);
  return {split_heads(graph, vector, kv_rank), rotated(graph, rot, positions)};
}

// Maps queries into the space of the compressed vector, which then is key and value of all heads. `attend` returns the
// attention result for queries [n_tokens, n_head, kv_rank + n_rot]: [n_tokens, n_head * kv_rank].
template <typename Attend>
ValueId absorbed_attention(Graph& graph, const Parts& query, const Parts& compressed, const LatentAttentionWeights& w,
                           const ModelConfig& config, const CacheDesc& cache, const Attend& attend) {
  const ValueId q_nope = graph.matmul_experts(query.nope, *w.k_b, kNoValue);  // [n_tokens, n_head, kv_rank]
  const ValueId q = graph.concat_columns(q_nope, query.rot);                  // [n_tokens, n_head, kv_rank + n_rot]
  graph.kv_store(graph.concat_columns(compressed.nope, compressed.rot), kNoValue, cache);
  const ValueId heads = split_heads(graph, attend(q), config.latent.kv_rank);  // [n_tokens, n_head, kv_rank]
  return as_rows(graph, graph.matmul_experts(heads, *w.v_b, kNoValue));
}

// Computes separate keys and values for every head.
ValueId expanded_attention(Graph& graph, const Parts& query, const Parts& compressed, const LatentAttentionWeights& w,
                           const ModelConfig& config, const CacheDesc& cache, const AttentionParams& params) {
  const int64_t value_dim = config.latent.value_dim, n_nope = config.latent.key_dim - config.rope.n_dims;
  const ValueId kv = split_heads(graph, linear(graph, as_rows(graph, compressed.nope), w.kv_b), n_nope + value_dim);
  // The rotated dimensions are the same in all heads.
  const ValueId k = graph.concat_columns(graph.slice_columns(kv, 0, n_nope), compressed.rot);
  const ValueId v = graph.slice_columns(kv, n_nope, value_dim);
  return attention(graph, graph.concat_columns(query.nope, query.rot), k, v, cache, params);
}

}  // namespace

LatentAttentionWeights declare_latent_attention(WeightSet& weights, const ModelConfig& config, int layer) {
  const WeightRole role = WeightRole::kAttention;
  const LatentConfig& latent = config.latent;
  const int64_t d = config.n_embd, n_head = config.layers[layer].n_head;
  const int64_t n_rot = config.rope.n_dims, n_nope = latent.key_dim - n_rot;
  LatentAttentionWeights w;
  if (latent.q_rank == 0) {
    w.q = declare_linear(weights, layer, role, "attn_q", n_head * latent.key_dim, d);
  } else {
    w.q_a = declare_linear(weights, layer, role, "attn_q_a", latent.q_rank, d);
    w.q_a_norm = declare_norm(weights, layer, "attn_q_a_norm", latent.q_rank);
    w.q_b = declare_linear(weights, layer, role, "attn_q_b", n_head * latent.key_dim, latent.q_rank);
  }
  w.kv_a = declare_linear(weights, layer, role, "attn_kv_a_mqa", latent.kv_rank + n_rot, d);
  w.kv_a_norm = declare_norm(weights, layer, "attn_kv_a_norm", latent.kv_rank);
  if (latent.cached) {
    w.k_b = weights.require(layer, role, "attn_k_b.weight", {n_head, latent.kv_rank, n_nope});
    w.v_b = weights.require(layer, role, "attn_v_b.weight", {n_head, latent.value_dim, latent.kv_rank});
  } else {
    w.kv_b = declare_linear(weights, layer, role, "attn_kv_b", n_head * (n_nope + latent.value_dim), latent.kv_rank);
  }
  w.out = declare_linear(weights, layer, role, "attn_output", d, n_head * latent.value_dim);
  return w;
}

float latent_attention_scale(const ModelConfig& config) {
  return 1 / std::sqrt(static_cast<float>(config.latent.key_dim));
}

ValueId compressed_queries(Graph& graph, ValueId x, const LatentAttentionWeights& w, const ModelConfig& config) {
  return graph.rms_norm(linear(graph, x, w.q_a), w.q_a_norm, config.norm_eps);
}

ValueId latent_attention(Graph& graph, ValueId x, const LatentAttentionWeights& w, const ModelConfig& config,
                         const LatentPositions& positions, const CacheDesc& cache, const AttentionParams& params) {
  const ValueId q = w.q.weight ? linear(graph, x, w.q) : linear(graph, compressed_queries(graph, x, w, config), w.q_b);
  const Parts query = query_parts(graph, q, config, positions);
  const Parts compressed = compressed_parts(graph, x, w, config, positions);
  if (!config.latent.cached) return expanded_attention(graph, query, compressed, w, config, cache, params);
  return absorbed_attention(graph, query, compressed, w, config, cache,
                            [&](ValueId heads) { return graph.paged_attention(heads, cache, params); });
}

ValueId sparse_latent_attention(Graph& graph, ValueId x, ValueId queries, const LatentAttentionWeights& w,
                                const ModelConfig& config, const LatentPositions& positions, const CacheDesc& cache,
                                ValueId selected, float scale) {
  const Parts query = query_parts(graph, linear(graph, queries, w.q_b), config, positions);
  const Parts compressed = compressed_parts(graph, x, w, config, positions);
  const SparseAttentionParams params = {.scale = scale, .block = config.indexer.select.block};
  return absorbed_attention(graph, query, compressed, w, config, cache,
                            [&](ValueId heads) { return graph.sparse_attention(heads, selected, cache, params).out; });
}

}  // namespace infer
