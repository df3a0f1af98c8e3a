// Attention over the paged cache.
#pragma once

#include "src/model/blocks/linear.h"
#include "src/model/config.h"

namespace infer {

struct AttentionWeights {
  Linear q;    // [n_head * key_dim, n_embd]
  Linear k;    // [n_kv_head * key_dim, n_embd]
  Linear v;    // [n_kv_head * value_dim, n_embd]
  Linear out;  // [n_embd, n_head * value_dim]
};

// Uses the head counts of the layer's configuration.
AttentionWeights declare_attention(WeightSet& weights, const ModelConfig& config, int layer);

// x [n_rows, n_head * head_dim] -> [n_rows, n_head, head_dim]: a view.
ValueId split_heads(Graph& graph, ValueId x, int64_t head_dim);

// Rotary position embedding. x [n_tokens, n_head, head_dim] -> the same shape.
ValueId rope_interleaved(Graph& graph, ValueId x, ValueId table);  // rotates the pairs (2i, 2i + 1)
ValueId rope_neox(Graph& graph, ValueId x, ValueId table);         // rotates the pairs (i, i + n_dims / 2)

// 1 / sqrt(key_dim), the usual factor on q . k.
float attention_scale(const ModelConfig& config);

// Stores k [n_tokens, n_kv_head, key_dim] and v [n_tokens, n_kv_head, value_dim] in the cache, then attends from
// q [n_tokens, n_head, key_dim] -> [n_tokens, n_head * value_dim].
ValueId attention(Graph& graph, ValueId q, ValueId k, ValueId v, const CacheDesc& cache, const AttentionParams& params);

}  // namespace infer
