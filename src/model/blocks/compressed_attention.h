// The attention of DeepSeek V4: one vector per position is key and value of all heads. Besides the last positions, a
// token attends to compressed entries, each pooled from consecutive positions; with the short stride, an indexer
// selects among them.
#pragma once

#include "src/model/blocks/linear.h"
#include "src/model/model.h"

namespace infer {

// Pools one vector per `stride` positions, gated per channel. With `parts` 2, consecutive pools overlap.
struct CompressorWeights {
  Linear x;                         // [parts * dim, n_embd]
  Linear gate;                      // [parts * dim, n_embd]
  const Weight* offsets = nullptr;  // [stride, parts * dim], added to the gates
  const Weight* norm = nullptr;     // [dim]
};

struct CompressedAttentionWeights {
  const Weight* sinks = nullptr;    // [n_head]
  Linear q_a;                       // [q_rank, n_embd]
  const Weight* q_norm = nullptr;   // [q_rank]
  Linear q_b;                       // [n_head * key_dim, q_rank]
  Linear kv;                        // [key_dim, n_embd]
  const Weight* kv_norm = nullptr;  // [key_dim]
  CompressorWeights compressor;     // empty without compression
  Linear index_q;        // [indexer.n_head * indexer.key_dim, q_rank]; this and the rest are empty without an indexer
  Linear index_weights;  // [indexer.n_head, n_embd]
  CompressorWeights index_compressor;
  const Weight* out_a = nullptr;  // [n_groups, out_rank, n_head / n_groups * key_dim]
  Linear out_b;                   // [n_embd, n_groups * out_rank]
};

// Sets the layers' windows, strides and indexers, and the two ropes. Layers without compression use rope_window, which
// does not scale positions and has its own base. REQUIRES: `config` has its sizes and rope.
void read_compressed_attention(ConfigReader& reader, ModelConfig& config);
// A group for the last positions, one for the compressed entries and one for the states of their pools.
std::vector<CacheGroup> compressed_cache_groups(const ModelConfig& config);

CompressedAttentionWeights declare_compressed_attention(WeightSet& weights, const ModelConfig& config, int layer,
                                                        int64_t n_groups, int64_t out_rank);

// Rope tables: the last dimensions of the heads are rotated, and those of the result rotated back.
struct CompressedTables {
  ValueId forward = kNoValue, backward = kNoValue;  // for the step's tokens
  ValueId entries = kNoValue;                       // for the first position of each token's pool
};
CompressedTables compressed_tables(Graph& graph, RopeTableParams rope, int stride);

struct CompressedCaches {
  CacheDesc window, compressed, index, state;  // only the first is always used
};
CompressedCaches compressed_caches(const Model& model, int layer, CacheTypes types);

// x [n_tokens, n_embd] -> [n_tokens, n_head * key_dim], before the output's matrices.
ValueId compressed_attention(Graph& graph, ValueId x, const CompressedAttentionWeights& w, const ModelConfig& config,
                             int layer, const CompressedTables& tables, const CompressedCaches& caches);
// -> [n_tokens, n_embd].
ValueId grouped_output(Graph& graph, ValueId heads, const CompressedAttentionWeights& w);

}  // namespace infer
