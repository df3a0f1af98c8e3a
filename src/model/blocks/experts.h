// Mixture of experts: routed and shared experts, and layers that have either these or a dense feed-forward.
#pragma once

#include "src/model/blocks/feed_forward.h"

namespace infer {

struct ExpertWeights {
  Linear gate;  // [n_expert, n_ff_expert, n_embd], bias [n_expert, n_ff_expert]
  Linear up;    // [n_expert, n_ff_expert, n_embd], bias [n_expert, n_ff_expert]
  Linear down;  // [n_expert, n_embd, n_ff_expert], bias [n_expert, n_embd]
  // Per expert: the rows of gate, then those of up, if the file joins the two; they are then empty.
  const Weight* gate_up = nullptr;  // [n_expert, 2 * n_ff_expert, n_embd]
};

struct RouterWeights {
  Linear scores;                           // [n_expert, n_embd]
  const Weight* selection_bias = nullptr;  // [n_expert], null if the file has none
};

RouterWeights declare_router(WeightSet& weights, const ModelConfig& config, int layer);
// Throws Error(kUnsupported) for files with one tensor per expert.
ExpertWeights declare_experts(WeightSet& weights, const ModelConfig& config, int layer);
// The same with biases, which declare_experts() leaves empty.
ExpertWeights declare_biased_experts(WeightSet& weights, const ModelConfig& config, int layer);
// The shared expert, n_ff_shared_expert wide; empty if that is 0.
GatedFeedForwardWeights declare_shared_expert(WeightSet& weights, const ModelConfig& config, int layer);
// The same with gate and up in one matrix.
JoinedFeedForwardWeights declare_joined_shared_expert(WeightSet& weights, const ModelConfig& config, int layer);
const Weight* declare_shared_expert_gate(WeightSet& weights, const ModelConfig& config, int layer);  // [1, n_embd]

// Experts without a gate, for vectors of any width.
struct UngatedExpertWeights {
  const Weight* up = nullptr;    // [n_expert, n_ff_expert, width]
  const Weight* down = nullptr;  // [n_expert, width, n_ff_expert]
};

UngatedExpertWeights declare_ungated_experts(WeightSet& weights, const ModelConfig& config, int layer, int64_t width);

// Whether the file has a router for the layer; otherwise the layer is dense.
bool has_experts(const WeightSet& weights, int layer);

// Selects each token's experts: x [n_rows, n_embd] -> ids and weights [n_rows, n_used].
Graph::Route route(Graph& graph, ValueId x, const RouterWeights& w, const ModelConfig& config);

// The weighted sum of the selected experts' gated feed-forwards.
// x [n_rows, n_embd], route ids and weights [n_rows, n_used] -> [n_rows, n_embd].
ValueId gated_experts(Graph& graph, ValueId x, const ExpertWeights& w, const Graph::Route& route,
                      const GatedActivationParams& activation);
// The sum of the selected experts' gated feed-forwards, where each expert's input is x times its weight. REQUIRES: no
// biases.
ValueId gated_experts_of_weighted(Graph& graph, ValueId x, const ExpertWeights& w, const Graph::Route& route,
                                  const GatedActivationParams& activation);

// The weighted sum of the selected experts' feed-forwards. x [n_rows, width], route as above -> the same shape.
ValueId ungated_experts(Graph& graph, ValueId x, const UngatedExpertWeights& w, const Graph::Route& route,
                        UnaryKind activation);

// A feed-forward that is dense in some layers and a mixture of experts in the others, optionally with a shared one.
struct LayerFeedForwardWeights {
  GatedFeedForwardWeights dense;  // empty in layers with experts
  RouterWeights router;           // this and the rest are empty in dense layers
  ExpertWeights experts;
  GatedFeedForwardWeights shared;  // empty without a shared expert
};

LayerFeedForwardWeights declare_layer_feed_forward(WeightSet& weights, const ModelConfig& config, int layer);

// x [n_rows, n_embd] -> [n_rows, n_embd]: the dense feed-forward, or the sum of the routed experts and the shared one.
ValueId layer_feed_forward(Graph& graph, ValueId x, const LayerFeedForwardWeights& w, const ModelConfig& config,
                           const GatedActivationParams& activation);

// The same with a separate activation for the shared expert and the dense feed-forward.
ValueId layer_feed_forward(Graph& graph, ValueId x, const LayerFeedForwardWeights& w, const ModelConfig& config,
                           const GatedActivationParams& routed, const GatedActivationParams& shared);

// Skips the tensors of the layers that drop_prediction_layers() removed.
void ignore_prediction_layers(WeightSet& weights, const ModelConfig& config);

}  // namespace infer
