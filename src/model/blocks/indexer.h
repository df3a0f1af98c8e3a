// Indexers of sparse attention: they select the positions that each token attends to, using separate small queries and
// keys. The keys are cached next to the layer's keys and values.
#pragma once

#include "src/model/blocks/linear.h"
#include "src/model/config.h"

namespace infer {

// Reads the number and width of index heads, and how many positions (or blocks of them) are selected. REQUIRES:
// `config` has its rope.
void read_indexer(ConfigReader& reader, ModelConfig& config);

// The same for latent attention, in all layers. REQUIRES: `config` has its latent attention.
void read_latent_indexer(ConfigReader& reader, ModelConfig& config);

// DeepSeek V3.2 (https://arxiv.org/abs/2512.02556): queries from the compressed queries of latent attention; keys
// through a layer norm; a weight per head that depends on the token. Sizes are those of config.indexer.
struct IndexerWeights {
  Linear q;             // [n_head * key_dim, q_rank]
  Linear k;             // [key_dim, n_embd]
  LayerNorm k_norm;     // [key_dim]
  Linear head_weights;  // [n_head, n_embd]
};

IndexerWeights declare_indexer(WeightSet& weights, const ModelConfig& config, int layer);
// Skips the same tensors in a layer that does not use them.
void ignore_indexer(WeightSet& weights, int layer);

// Stores the step's index keys, then selects. x [n_tokens, n_embd], queries [n_tokens, q_rank] -> positions
// [n_tokens, 1, select.count]. The first dimensions of a head are rotated.
ValueId select_positions(Graph& graph, ValueId x, ValueId queries, const IndexerWeights& w, const ModelConfig& config,
                         ValueId rope_table, bool interleaved, const CacheDesc& index);

// MiniMax M3: queries from the layer's input; queries and keys through an RMS norm; no weights per head.
struct NormalizedIndexerWeights {
  Linear q;                        // [n_head * key_dim, n_embd]
  Linear k;                        // [key_dim, n_embd]
  const Weight* q_norm = nullptr;  // [key_dim]
  const Weight* k_norm = nullptr;  // [key_dim]
};

NormalizedIndexerWeights declare_normalized_indexer(WeightSet& weights, const ModelConfig& config, int layer);
// The same with NeoX rope, which rotates the pairs (i, i + n_dims / 2).
// -> blocks [n_tokens, 1 or n_head, select.count].
ValueId select_positions(Graph& graph, ValueId x, const NormalizedIndexerWeights& w, const ModelConfig& config,
                         ValueId rope_table, const CacheDesc& index);

// Qwen4-Exp: an index key is the mean over index.stride positions, taken before its norm. Blocks of that many positions
// are selected, select.count positions in all, plus those after the last complete mean. `key_table`: the angles of the
// first position of each mean. -> blocks of index.stride positions [n_tokens, 1, select.count / index.stride + 1].
ValueId select_blocks_by_mean(Graph& graph, ValueId x, const NormalizedIndexerWeights& w, const ModelConfig& config,
                              ValueId rope_table, ValueId key_table, const CacheDesc& index, const CacheDesc& state);
// Reads the stride of each layer; layers without one have no indexer. Sets the size of the states that the means need.
void read_index_strides(ConfigReader& reader, ModelConfig& config);
// Skips the tensors in a layer that does not use them.
void ignore_normalized_indexer(WeightSet& weights, int layer);

}  // namespace infer
