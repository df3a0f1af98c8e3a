// Attention over the paged cache.
#pragma once

#include "src/model/blocks/linear.h"
#include "src/model/config.h"

namespace infer {

struct AttentionWeights {
  Linear q;    // [n_head * key_dim, n_embd]
  Linear k;    // [n_kv_head * key_dim, n_embd]
  Linear v;    // [n_kv_head * value_dim, n_embd]; empty if values are the same as keys
  Linear out;  // [n_embd, n_head * value_dim]
  Linear qkv;  // the rows of q, k and v, in this order, if the file joins the three; they are then empty
};

// Uses the head counts of the layer's configuration.
AttentionWeights declare_attention(WeightSet& weights, const ModelConfig& config, int layer);

// The same for architectures whose files may join queries, keys and values in one matrix.
AttentionWeights declare_joined_attention(WeightSet& weights, const ModelConfig& config, int layer);

// Queries [n_tokens, n_head, key_dim], keys [n_tokens, n_kv_head, key_dim] and values [n_tokens, n_kv_head, value_dim].
struct Heads {
  ValueId q, k, v;
};

// x [n_tokens, n_embd]; the weights may be joined or not.
Heads project_heads(Graph& graph, ValueId x, const AttentionWeights& w, const ModelConfig& config, int layer);

// x [n_rows, n_head * head_dim] -> [n_rows, n_head, head_dim]: a view.
ValueId split_heads(Graph& graph, ValueId x, int64_t head_dim);

// Rotary position embedding. x [n_tokens, n_head, head_dim] -> the same shape.
ValueId rope_interleaved(Graph& graph, ValueId x, ValueId table);  // rotates the pairs (2i, 2i + 1)
ValueId rope_neox(Graph& graph, ValueId x, ValueId table);         // rotates the pairs (i, i + n_dims / 2)

// Both rotate queries and keys.
void rope_interleaved(Graph& graph, Heads& heads, ValueId table);
void rope_neox(Graph& graph, Heads& heads, ValueId table);
// Normalizes every head of queries and keys with the same weights [key_dim].
void rms_norm_heads(Graph& graph, Heads& heads, const Weight* q_norm, const Weight* k_norm, float eps);

// The same with separate weights for every head: [n_head * key_dim] and [n_kv_head * key_dim].
void rms_norm_each_head(Graph& graph, Heads& heads, const Weight* q_norm, const Weight* k_norm, float eps);

// Normalizes all heads of a token together; weights [n_head * key_dim] and [n_kv_head * key_dim].
void rms_norm_rows(Graph& graph, Heads& heads, const Weight* q_norm, const Weight* k_norm, float eps);
void layer_norm_rows(Graph& graph, Heads& heads, const LayerNorm& q_norm, const LayerNorm& k_norm, float eps);

// Weights of a layer norm for each head.
struct HeadNorms {
  const Weight* q = nullptr;  // [n_head * key_dim], null if the file has none
  const Weight* k = nullptr;  // [n_kv_head * key_dim], null if the file has none
};

HeadNorms declare_head_norms(WeightSet& weights, const ModelConfig& config, int layer);
void layer_norm_heads(Graph& graph, Heads& heads, const HeadNorms& w, float eps);

// Clamps queries, keys and values to [-limit, limit]; 0: no limit.
void clamp_heads(Graph& graph, Heads& heads, float limit);

// Multiplies q [n_tokens, n_head, key_dim] by a factor per token, [n_tokens, 1].
ValueId scale_by_position(Graph& graph, ValueId q, ValueId factor);

// Declares attn_gate: one row per head, or one per value of the attention result. Empty if the file has none.
Linear declare_attention_gate(WeightSet& weights, const ModelConfig& config, int layer, int64_t n_out);
// h [n_tokens, n_head * value_dim] times f(gate(x)), where x [n_tokens, n_embd] is the input of attention; just h if
// there is no gate.
ValueId gate_attention(Graph& graph, ValueId h, ValueId x, const Linear& gate, UnaryKind f);

inline constexpr float kAlibiMaxBias = 8;  // the same in all models but MPT, whose files give it

// 1 / sqrt(key_dim), the usual factor on q . k.
float attention_scale(const ModelConfig& config);

// Stores k [n_tokens, n_kv_head, key_dim] and v [n_tokens, n_kv_head, value_dim] in the cache, then attends from
// q [n_tokens, n_head, key_dim] -> [n_tokens, n_head * value_dim].
ValueId attention(Graph& graph, ValueId q, ValueId k, ValueId v, const CacheDesc& cache, const AttentionParams& params);
ValueId attention(Graph& graph, const Heads& heads, const CacheDesc& cache, const AttentionParams& params);
// The same with sinks [n_head].
ValueId attention_with_sinks(Graph& graph, const Heads& heads, const CacheDesc& cache, const AttentionParams& params,
                             const Weight& sinks);

}  // namespace infer
