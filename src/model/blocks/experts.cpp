#include "src/model/blocks/experts.h"

#include "ggml-like/error.h"
#include "ggml-like/message.h"

namespace infer {

const Weight* declare_router(WeightSet& weights, const ModelConfig& config, int layer) {
  return weights.require(layer, WeightRole::kRouter, "ffn_gate_inp.weight", {config.n_expert, config.n_embd});
}

ExpertWeights declare_experts(WeightSet& weights, const ModelConfig& config, int layer) {
  if (weights.has(layer, "ffn_gate.0.weight")) {
    throw Error(
        ErrorCode::kUnsupported,
        expected_found("model", "tensor " + WeightSet::full_name(layer, "ffn_gate.0.weight"),
                       concat("one tensor ", WeightSet::full_name(layer, "ffn_gate_exps.weight"), " for all experts"),
                       "the old format with one tensor per expert; convert the model again"));
  }
  const WeightRole role = WeightRole::kExpert;
  const int64_t d = config.n_embd, f = config.n_ff_expert, e = config.n_expert;
  ExpertWeights w;
  w.gate = weights.require(layer, role, "ffn_gate_exps.weight", {e, f, d});
  w.up = weights.require(layer, role, "ffn_up_exps.weight", {e, f, d});
  w.down = weights.require(layer, role, "ffn_down_exps.weight", {e, d, f});
  return w;
}

GatedFeedForwardWeights declare_shared_expert(WeightSet& weights, const ModelConfig& config, int layer) {
  const WeightRole role = WeightRole::kSharedExpert;
  const int64_t d = config.n_embd, f = config.n_ff_shared_expert;
  GatedFeedForwardWeights w;
  w.gate.weight = weights.require(layer, role, "ffn_gate_shexp.weight", {f, d});
  w.up.weight = weights.require(layer, role, "ffn_up_shexp.weight", {f, d});
  w.down.weight = weights.require(layer, role, "ffn_down_shexp.weight", {d, f});
  return w;
}

JoinedFeedForwardWeights declare_joined_shared_expert(WeightSet& weights, const ModelConfig& config, int layer) {
  const WeightRole role = WeightRole::kSharedExpert;
  const int64_t d = config.n_embd, f = config.n_ff_shared_expert;
  JoinedFeedForwardWeights w;
  w.gate_up.weight = weights.require(layer, role, "ffn_up_shexp.weight", {2 * f, d});
  w.down.weight = weights.require(layer, role, "ffn_down_shexp.weight", {d, f});
  return w;
}

const Weight* declare_shared_expert_gate(WeightSet& weights, const ModelConfig& config, int layer) {
  return weights.require(layer, WeightRole::kSharedExpert, "ffn_gate_inp_shexp.weight", {1, config.n_embd});
}

ValueId gated_experts(Graph& graph, ValueId x, const ExpertWeights& w, const Graph::Route& route,
                      UnaryKind activation) {
  const ValueId gate = graph.matmul_experts(x, *w.gate, route.ids);      // [n_rows, n_expert_used, n_ff_expert]
  const ValueId up = graph.matmul_experts(x, *w.up, route.ids);          // [n_rows, n_expert_used, n_ff_expert]
  const ValueId inner = graph.gated_activation(gate, up, activation);    // [n_rows, n_expert_used, n_ff_expert]
  const ValueId down = graph.matmul_experts(inner, *w.down, route.ids);  // [n_rows, n_expert_used, n_embd]
  return graph.moe_combine(down, route.weights);                         // [n_rows, n_embd]
}

}  // namespace infer
