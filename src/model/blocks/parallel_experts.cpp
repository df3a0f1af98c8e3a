#include "src/model/blocks/parallel_experts.h"

#include <cmath>

namespace infer {
namespace {

// The experts of each token, with their weights multiplied by the experts' factors.
Graph::Route scaled_route(Graph& graph, ValueId x, const ParallelExpertsWeights& w, const ModelConfig& config) {
  const float scale = 1 / std::sqrt(static_cast<float>(config.n_embd));
  const ValueId normalized = graph.scale(graph.rms_norm(x, w.router_norm, config.norm_eps), scale);
  Graph::Route chosen = route(graph, normalized, w.router, config);  // [n_rows, n_used]
  if (!w.factors) return chosen;
  // The factors are stored as a matrix of one element per expert.
  const Shape shape = graph.value(chosen.weights).desc.shape;
  const ValueId each = graph.reshape(chosen.weights, {shape[0], shape[1], 1});
  chosen.weights = graph.reshape(graph.matmul_experts(each, *w.factors, chosen.ids), shape);
  return chosen;
}

}  // namespace

ParallelExpertsWeights declare_parallel_experts(WeightSet& weights, const ModelConfig& config, int layer) {
  ParallelExpertsWeights w;
  w.dense_norm = declare_norm(weights, layer, "post_ffw_norm_1", config.n_embd);
  w.norm = declare_norm(weights, layer, "pre_ffw_norm_2", config.n_embd);
  w.post_norm = declare_norm(weights, layer, "post_ffw_norm_2", config.n_embd);
  w.router_norm = weights.require(layer, WeightRole::kRouter, "ffn_gate_inp.scale", {config.n_embd});
  w.router = declare_router(weights, config, layer);
  w.experts = declare_experts(weights, config, layer);
  w.factors = weights.optional(layer, WeightRole::kExpert, "ffn_down_exps.scale", {config.n_expert, 1, 1});
  return w;
}

ValueId add_parallel_experts(Graph& graph, ValueId dense, ValueId x, const ParallelExpertsWeights& w,
                             const ModelConfig& config) {
  const float eps = config.norm_eps;
  const Graph::Route chosen = scaled_route(graph, x, w, config);
  const ValueId routed = gated_experts(graph, graph.rms_norm(x, w.norm, eps), w.experts, chosen, UnaryKind::kGeluTanh);
  return graph.add(graph.rms_norm(dense, w.dense_norm, eps), graph.rms_norm(routed, w.post_norm, eps));
}

}  // namespace infer
