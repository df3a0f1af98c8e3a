// The parts decoder models are made of: their weights, how the weights are declared, and the nodes that compute them.
// Plain functions; what differs between architectures is a parameter or a weight that is absent.
#pragma once

#include "ggml-like/graph.h"
#include "src/model/config.h"
#include "src/model/weights.h"

namespace infer {

// Shapes with d = n_embd, k = key_dim, v = value_dim.
struct AttentionWeights {
  const Weight* q = nullptr;         // [n_head * k, d]
  const Weight* k = nullptr;         // [n_kv_head * k, d]
  const Weight* v = nullptr;         // [n_kv_head * v, d]
  const Weight* out = nullptr;       // [d, n_head * v]
  const Weight* q_bias = nullptr;    // [n_head * k], optional like all biases
  const Weight* k_bias = nullptr;    // [n_kv_head * k]
  const Weight* v_bias = nullptr;    // [n_kv_head * v]
  const Weight* out_bias = nullptr;  // [d]
  const Weight* q_norm = nullptr;    // [k], of each head; optional
  const Weight* k_norm = nullptr;    // [k]
};

struct FeedForwardWeights {
  const Weight* gate = nullptr;       // [f, d], null where the activation is not gated
  const Weight* up = nullptr;         // [f, d]
  const Weight* down = nullptr;       // [d, f]
  const Weight* gate_bias = nullptr;  // [f]
  const Weight* up_bias = nullptr;    // [f]
  const Weight* down_bias = nullptr;  // [d]
};

// Routed experts, and a shared one that every token takes.
struct ExpertWeights {
  const Weight* router = nullptr;       // [e, d]
  const Weight* gate = nullptr;         // [e, f, d]
  const Weight* up = nullptr;           // [e, f, d]
  const Weight* down = nullptr;         // [e, d, f]
  FeedForwardWeights shared;            // up is null where there is none
  const Weight* shared_gate = nullptr;  // [1, d]: its sigmoid weighs the shared expert; optional
};

enum class HeadNorms : uint8_t { kNone, kRequired };
enum class Gate : uint8_t { kNone, kRequired };

AttentionWeights declare_attention(WeightSet& weights, const ModelConfig& config, int layer, HeadNorms norms);
// With the width of the layer's configuration.
FeedForwardWeights declare_feed_forward(WeightSet& weights, const ModelConfig& config, int layer, Gate gate);
// Only the routed experts; refuses files of one tensor per expert.
ExpertWeights declare_experts(WeightSet& weights, const ModelConfig& config, int layer);

struct AttentionOptions {
  ValueId rope_table = kNoValue;
  bool interleaved = false;  // which pairs are rotated, see RopeParams
  AttentionParams params;
  float norm_eps = 0;  // of the head norms
};

// x [T, d], the normed input -> [T, n_head * v], before the output product. Stores keys and values in the cache.
ValueId attention_heads(Graph& graph, ValueId x, const AttentionWeights& weights, const CacheDesc& cache,
                        const AttentionOptions& options);

// x [rows, d] -> [rows, d]. The activation is of the gate where there is one, else of the product `up`.
ValueId feed_forward(Graph& graph, ValueId x, const FeedForwardWeights& weights, UnaryKind activation);
ValueId experts(Graph& graph, ValueId x, const ExpertWeights& weights, const MoeRouteParams& route,
                UnaryKind activation);

}  // namespace infer
