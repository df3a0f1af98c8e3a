#include "src/model/blocks/narrow_experts.h"

#include "src/model/blocks/in_and_out.h"

namespace infer {
namespace {

ValueId activate(Graph& graph, ValueId gate, ValueId up, const CappedGate& activation) {
  const ValueId capped = graph.gated_activation(gate, soft_cap(graph, gate, activation.gate_cap), UnaryKind::kSigmoid);
  return graph.mul(capped, soft_cap(graph, up, activation.up_cap));
}

ValueId capped_feed_forward(Graph& graph, ValueId x, const GatedFeedForwardWeights& w, const CappedGate& activation) {
  return linear(graph, activate(graph, linear(graph, x, w.gate), linear(graph, x, w.up), activation), w.down);
}

}  // namespace

NarrowExpertsWeights declare_narrow_experts(WeightSet& weights, const ModelConfig& config, int layer, int64_t width) {
  NarrowExpertsWeights w;
  if (!has_experts(weights, layer)) {
    w.dense = declare_gated_feed_forward(weights, config, layer);
    return w;
  }
  w.router = declare_router(weights, config, layer);
  if (width > 0) {
    const WeightRole role = WeightRole::kFeedForward;
    w.narrow = declare_linear(weights, layer, role, "ffn_routed_down", width, config.n_embd);
    w.widen = declare_linear(weights, layer, role, "ffn_routed_up", config.n_embd, width);
    w.norm = weights.optional(layer, WeightRole::kNorm, "ffn_routed_norm.weight", {width});
  }
  const int64_t d = width > 0 ? width : config.n_embd, f = config.n_ff_expert, e = config.n_expert;
  w.experts.gate.weight = weights.require(layer, WeightRole::kExpert, "ffn_gate_exps.weight", {e, f, d});
  w.experts.up.weight = weights.require(layer, WeightRole::kExpert, "ffn_up_exps.weight", {e, f, d});
  w.experts.down.weight = weights.require(layer, WeightRole::kExpert, "ffn_down_exps.weight", {e, d, f});
  if (weights.has(layer, "ffn_gate_shexp.weight")) w.shared = declare_shared_expert(weights, config, layer);
  return w;
}

ValueId narrow_experts(Graph& graph, ValueId x, const NarrowExpertsWeights& w, const ModelConfig& config,
                       const CappedGate& activation) {
  if (w.dense.up.weight) return capped_feed_forward(graph, x, w.dense, activation);
  const Graph::Route chosen = route(graph, x, w.router, config);  // [n_rows, n_used]
  const ValueId in = w.narrow.weight ? linear(graph, x, w.narrow) : x;
  const ValueId gate = graph.matmul_experts(in, *w.experts.gate.weight, chosen.ids);  // [n_rows, n_used, n_ff_expert]
  const ValueId up = graph.matmul_experts(in, *w.experts.up.weight, chosen.ids);      // [n_rows, n_used, n_ff_expert]
  const ValueId down = graph.matmul_experts(activate(graph, gate, up, activation), *w.experts.down.weight, chosen.ids);
  ValueId sum = graph.moe_combine(down, chosen.weights);  // [n_rows, width]
  if (w.norm) sum = graph.rms_norm(sum, w.norm, config.norm_eps);
  if (w.widen.weight) sum = linear(graph, sum, w.widen);  // [n_rows, n_embd]
  return w.shared.up.weight ? graph.add(sum, capped_feed_forward(graph, x, w.shared, activation)) : sum;
}

}  // namespace infer
