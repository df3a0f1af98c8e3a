#include "src/model/blocks/experts.h"

#include "ggml-like/error.h"
#include "ggml-like/message.h"

namespace infer {
namespace {

ValueId experts_linear(Graph& graph, ValueId x, const Linear& w, ValueId ids) {
  return graph.matmul_experts(x, *w.weight, ids, w.bias);
}

struct GateAndUp {
  ValueId gate, up;  // [n_rows, n_used, n_ff_expert]
};

GateAndUp gate_and_up(Graph& graph, ValueId x, const ExpertWeights& w, ValueId ids) {
  if (!w.gate_up) return {experts_linear(graph, x, w.gate, ids), experts_linear(graph, x, w.up, ids)};
  const ValueId both = graph.matmul_experts(x, *w.gate_up, ids);  // [n_rows, n_used, 2 * n_ff_expert]
  const int64_t n = graph.value(both).desc.shape[2] / 2;
  return {graph.slice_columns(both, 0, n), graph.slice_columns(both, n, n)};
}

}  // namespace

RouterWeights declare_router(WeightSet& weights, const ModelConfig& config, int layer) {
  const WeightRole role = WeightRole::kRouter;
  RouterWeights w;
  w.scores = declare_linear(weights, layer, role, "ffn_gate_inp", config.n_expert, config.n_embd);
  for (const std::string_view name : {"exp_probs_b.bias", "exp_probs_b"}) {
    if (!w.selection_bias) w.selection_bias = weights.optional(layer, role, name, {config.n_expert});
  }
  return w;
}

ExpertWeights declare_experts(WeightSet& weights, const ModelConfig& config, int layer) {
  if (weights.has(layer, "ffn_gate.0.weight")) {
    throw Error(
        ErrorCode::kUnsupported,
        expected_found("model", "tensor " + weights.full_name(layer, "ffn_gate.0.weight"),
                       concat("one tensor ", weights.full_name(layer, "ffn_gate_exps.weight"), " for all experts"),
                       "the old format with one tensor per expert; convert the model again"));
  }
  const WeightRole role = WeightRole::kExpert;
  const int64_t d = config.n_embd, f = config.n_ff_expert, e = config.n_expert;
  ExpertWeights w;
  w.gate_up = weights.optional(layer, role, "ffn_gate_up_exps.weight", {e, 2 * f, d});
  if (!w.gate_up) {
    w.gate.weight = weights.require(layer, role, "ffn_gate_exps.weight", {e, f, d});
    w.up.weight = weights.require(layer, role, "ffn_up_exps.weight", {e, f, d});
  }
  w.down.weight = weights.require(layer, role, "ffn_down_exps.weight", {e, d, f});
  return w;
}

ExpertWeights declare_biased_experts(WeightSet& weights, const ModelConfig& config, int layer) {
  const WeightRole role = WeightRole::kExpert;
  const int64_t d = config.n_embd, f = config.n_ff_expert, e = config.n_expert;
  ExpertWeights w = declare_experts(weights, config, layer);
  w.gate.bias = weights.require(layer, role, "ffn_gate_exps.bias", {e, f});
  w.up.bias = weights.require(layer, role, "ffn_up_exps.bias", {e, f});
  w.down.bias = weights.require(layer, role, "ffn_down_exps.bias", {e, d});
  return w;
}

GatedFeedForwardWeights declare_shared_expert(WeightSet& weights, const ModelConfig& config, int layer) {
  const WeightRole role = WeightRole::kSharedExpert;
  const int64_t d = config.n_embd, f = config.n_ff_shared_expert;
  GatedFeedForwardWeights w;
  if (f == 0) return w;
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

UngatedExpertWeights declare_ungated_experts(WeightSet& weights, const ModelConfig& config, int layer, int64_t width) {
  const int64_t e = config.n_expert, f = config.n_ff_expert;
  return {weights.require(layer, WeightRole::kExpert, "ffn_up_exps.weight", {e, f, width}),
          weights.require(layer, WeightRole::kExpert, "ffn_down_exps.weight", {e, width, f})};
}

bool has_experts(const WeightSet& weights, int layer) { return weights.has(layer, "ffn_gate_inp.weight"); }

Graph::Route route(Graph& graph, ValueId x, const RouterWeights& w, const ModelConfig& config) {
  const ValueId scores = linear(graph, x, w.scores);  // [n_rows, n_expert]
  return graph.moe_route(scores, config.routing, w.selection_bias);
}

ValueId gated_experts(Graph& graph, ValueId x, const ExpertWeights& w, const Graph::Route& route,
                      const GatedActivationParams& activation) {
  const auto [gate, up] = gate_and_up(graph, x, w, route.ids);
  const ValueId inner = graph.gated_activation(gate, up, activation);    // [n_rows, n_used, n_ff_expert]
  const ValueId down = experts_linear(graph, inner, w.down, route.ids);  // [n_rows, n_used, n_embd]
  return graph.moe_combine(down, route.weights);                         // [n_rows, n_embd]
}

ValueId gated_experts_of_weighted(Graph& graph, ValueId x, const ExpertWeights& w, const Graph::Route& route,
                                  const GatedActivationParams& activation) {
  const Shape& used = graph.value(route.ids).desc.shape;
  const int64_t n_rows = used[0], n_used = used[1];
  const ValueId weights = graph.reshape(route.weights, {n_rows, n_used, 1});
  // Scaling the results of the first matmuls equals scaling x, because they have no bias.
  const auto [gate, up] = gate_and_up(graph, x, w, route.ids);
  const ValueId inner = graph.gated_activation(graph.mul(gate, weights), graph.mul(up, weights), activation);
  const ValueId down = experts_linear(graph, inner, w.down, route.ids);  // [n_rows, n_used, n_embd]
  const int64_t n_embd = graph.value(down).desc.shape[2];
  const ValueId parts = graph.reshape(down, {n_rows, n_used * n_embd});
  ValueId sum = graph.view_columns(parts, 0, n_embd);  // [n_rows, n_embd]
  for (int64_t u = 1; u < n_used; ++u) sum = graph.add(sum, graph.view_columns(parts, u * n_embd, n_embd));
  return sum;
}

ValueId ungated_experts(Graph& graph, ValueId x, const UngatedExpertWeights& w, const Graph::Route& route,
                        UnaryKind activation) {
  const ValueId inner = graph.unary(graph.matmul_experts(x, *w.up, route.ids), activation);
  return graph.moe_combine(graph.matmul_experts(inner, *w.down, route.ids), route.weights);  // [n_rows, width]
}

LayerFeedForwardWeights declare_layer_feed_forward(WeightSet& weights, const ModelConfig& config, int layer) {
  LayerFeedForwardWeights w;
  if (!has_experts(weights, layer)) {
    w.dense = declare_gated_feed_forward(weights, config, layer);
    return w;
  }
  w.router = declare_router(weights, config, layer);
  w.experts = declare_experts(weights, config, layer);
  w.shared = declare_shared_expert(weights, config, layer);
  return w;
}

ValueId layer_feed_forward(Graph& graph, ValueId x, const LayerFeedForwardWeights& w, const ModelConfig& config,
                           const GatedActivationParams& activation) {
  return layer_feed_forward(graph, x, w, config, activation, activation);
}

ValueId layer_feed_forward(Graph& graph, ValueId x, const LayerFeedForwardWeights& w, const ModelConfig& config,
                           const GatedActivationParams& routed, const GatedActivationParams& shared) {
  if (w.dense.up.weight) return gated_feed_forward(graph, x, w.dense, shared);
  const ValueId sum = gated_experts(graph, x, w.experts, route(graph, x, w.router, config), routed);
  if (!w.shared.up.weight) return sum;
  return graph.add(sum, gated_feed_forward(graph, x, w.shared, shared));
}

void ignore_prediction_layers(WeightSet& weights, const ModelConfig& config) {
  if (config.part == ModelPart::kPrediction) return;
  for (int i = 0; i < config.n_prediction_layers; ++i) weights.ignore_layer(config.n_layer + i);
}

}  // namespace infer
