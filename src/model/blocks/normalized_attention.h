// The attention of Gemma 3n and Gemma 4: every head of queries, keys and values is normalized, values without weights,
// and the last layers read the keys and values of earlier ones.
#pragma once

#include "src/model/blocks/attention.h"

namespace infer {

struct NormalizedAttentionWeights {
  AttentionWeights heads;          // only queries if the layer reads another layer's keys and values
  const Weight* q_norm = nullptr;  // [key_dim]
  const Weight* k_norm = nullptr;  // [key_dim], null if the layer has only queries
};

// A layer without values uses its keys as values. Keys and values that nothing reads are left out.
NormalizedAttentionWeights declare_normalized_attention(WeightSet& weights, const ModelConfig& config, int layer);

// Rope tables for layers without and with a window.
struct WindowTables {
  ValueId full, window;  // [n_tokens, n_dims / 2, 2]
};

// x [n_tokens, n_embd] -> [n_tokens, n_head * value_dim]. Scores are not scaled.
ValueId normalized_attention(Graph& graph, ValueId x, const NormalizedAttentionWeights& w, const ModelConfig& config,
                             int layer, const WindowTables& tables, const CacheDesc& cache);

}  // namespace infer
