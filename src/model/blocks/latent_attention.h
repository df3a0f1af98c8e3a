// Multi-head latent attention (https://arxiv.org/abs/2405.04434).
#pragma once

#include "src/model/blocks/linear.h"
#include "src/model/config.h"

namespace infer {

// The last n_rot = rope.n_dims of a head's key_dim dimensions are rotated; the other n_nope are not. All sizes are
// those of config.latent.
struct LatentAttentionWeights {
  Linear q;                           // [n_head * key_dim, n_embd], if queries are not compressed
  Linear q_a;                         // [q_rank, n_embd]
  const Weight* q_a_norm = nullptr;   // [q_rank]
  Linear q_b;                         // [n_head * key_dim, q_rank]
  Linear kv_a;                        // [kv_rank + n_rot, n_embd]
  const Weight* kv_a_norm = nullptr;  // [kv_rank]
  // From the compressed vector to keys and values. If the cache holds the vector: two matrices per head, of which the
  // one for keys is applied to the queries instead. Otherwise one matrix for all heads.
  const Weight* k_b = nullptr;  // [n_head, kv_rank, n_nope]
  const Weight* v_b = nullptr;  // [n_head, value_dim, kv_rank]
  Linear kv_b;                  // [n_head * (n_nope + value_dim), kv_rank]
  Linear out;                   // [n_embd, n_head * value_dim]
};

LatentAttentionWeights declare_latent_attention(WeightSet& weights, const ModelConfig& config, int layer);

struct LatentPositions {
  ValueId table = kNoValue;  // for config.rope; kNoValue: no rotation
  bool interleaved = false;
  ValueId query_factor = kNoValue;  // [n_tokens, 1], if queries are scaled
};

// 1 / sqrt(config.latent.key_dim), the usual factor on q . k.
float latent_attention_scale(const ModelConfig& config);

// Stores the step's keys, then attends: x [n_tokens, n_embd] -> [n_tokens, n_head * value_dim].
ValueId latent_attention(Graph& graph, ValueId x, const LatentAttentionWeights& w, const ModelConfig& config,
                         const LatentPositions& positions, const CacheDesc& cache, const AttentionParams& params);

// x [n_tokens, n_embd] -> [n_tokens, q_rank]. REQUIRES: queries are compressed.
ValueId compressed_queries(Graph& graph, ValueId x, const LatentAttentionWeights& w, const ModelConfig& config);

// The same, restricted to the `selected` positions, [n_tokens, 1, select.count] of config.indexer. `queries` are
// compressed. REQUIRES: the cache holds the compressed vector.
ValueId sparse_latent_attention(Graph& graph, ValueId x, ValueId queries, const LatentAttentionWeights& w,
                                const ModelConfig& config, const LatentPositions& positions, const CacheDesc& cache,
                                ValueId selected, float scale);

}  // namespace infer
