// Attention whose result is multiplied by a sigmoid gate, used in models that mix it with delta nets.
#pragma once

#include "src/model/blocks/attention.h"
#include "src/model/blocks/indexer.h"

namespace infer {

// The gate's weights are rows of q: for each head the rows of the query, then those of the gate.
struct GatedAttentionWeights {
  Linear qkv;  // the rows of q, k and v, in this order, if the file joins the three; they are then empty
  Linear q;    // [2 * n_head * key_dim, n_embd]
  Linear k;    // [n_kv_head * key_dim, n_embd]
  Linear v;    // [n_kv_head * value_dim, n_embd]
  Linear out;  // [n_embd, n_head * value_dim]
  const Weight* q_norm = nullptr;  // [key_dim]
  const Weight* k_norm = nullptr;  // [key_dim]
};

GatedAttentionWeights declare_gated_attention(WeightSet& weights, const ModelConfig& config, int layer);
// x [n_tokens, n_embd] -> heads, normalized and rotated, and the gate's inputs [n_tokens, n_head * key_dim].
struct GatedHeads {
  Heads heads;
  ValueId gate;
};
GatedHeads project_gated_heads(Graph& graph, ValueId x, const GatedAttentionWeights& w, const ModelConfig& config,
                               int layer, ValueId rope_table);
// The same followed by attention -> [n_tokens, n_head * key_dim], before `out`. Keys and values have the same size.
ValueId gated_attention(Graph& graph, ValueId x, const GatedAttentionWeights& w, const ModelConfig& config, int layer,
                        ValueId rope_table, const CacheDesc& cache, float scale);

// Caches of a layer that attends to selected positions only.
struct SelectedCaches {
  CacheDesc kv, index;
  CacheDesc state;  // only used if index.stride > 1
};
// Like gated_attention(), restricted to the positions that the indexer selects.
ValueId gated_attention_to_selected(Graph& graph, ValueId x, const GatedAttentionWeights& w,
                                    const NormalizedIndexerWeights& indexer, const ModelConfig& config, int layer,
                                    ValueId rope_table, const SelectedCaches& caches, float scale);

}  // namespace infer
