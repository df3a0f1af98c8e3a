// Mixture of experts: the routed experts and the shared expert.
#pragma once

#include "src/model/blocks/feed_forward.h"

namespace infer {

struct ExpertWeights {
  const Weight* gate = nullptr;  // [n_expert, n_ff_expert, n_embd]
  const Weight* up = nullptr;    // [n_expert, n_ff_expert, n_embd]
  const Weight* down = nullptr;  // [n_expert, n_embd, n_ff_expert]
};

const Weight* declare_router(WeightSet& weights, const ModelConfig& config, int layer);  // [n_expert, n_embd]
// Throws Error(kUnsupported) for files with one tensor per expert.
ExpertWeights declare_experts(WeightSet& weights, const ModelConfig& config, int layer);
// The shared expert, whose width is n_ff_shared_expert.
GatedFeedForwardWeights declare_shared_expert(WeightSet& weights, const ModelConfig& config, int layer);
// The same with the rows of gate and up joined.
JoinedFeedForwardWeights declare_joined_shared_expert(WeightSet& weights, const ModelConfig& config, int layer);
const Weight* declare_shared_expert_gate(WeightSet& weights, const ModelConfig& config, int layer);  // [1, n_embd]

// The weighted sum of the selected experts' gated feed-forwards.
// x [n_rows, n_embd], route ids and weights [n_rows, n_expert_used] -> [n_rows, n_embd].
ValueId gated_experts(Graph& graph, ValueId x, const ExpertWeights& w, const Graph::Route& route, UnaryKind activation);

}  // namespace infer
