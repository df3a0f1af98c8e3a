#include "src/model/blocks/mixture.h"

namespace infer {

void read_mixture(ConfigReader& reader, ModelConfig& config) {
  read_experts(reader, config);
  set_routing(reader, config, Gating::kSoftmax, Normalization::kSum);
  reader.only("expert_shared_count", {0, 1});
  config.n_ff_shared_expert = reader.count("expert_shared_feed_forward_length", 0, kMaxWidth, 0);
  if (config.n_expert == 0) return;
  require_experts(config);
  if (config.n_ff_shared_expert == 0) config.n_ff_shared_expert = config.layers[0].n_ff;
}

MixtureWeights declare_mixture(WeightSet& weights, const ModelConfig& config, int layer) {
  return {
      .router = declare_router(weights, config, layer),
      .experts = declare_experts(weights, config, layer),
      .shared = declare_shared_expert(weights, config, layer),
      .shared_gate = declare_shared_expert_gate(weights, config, layer),
  };
}

ValueId mixture(Graph& graph, ValueId x, const MixtureWeights& w, const ModelConfig& config) {
  const Graph::Route used = route(graph, x, w.router, config);                             // [n_rows, n_used]
  const ValueId routed = gated_experts(graph, x, w.experts, used, UnaryKind::kSilu);       // [n_rows, n_embd]
  const ValueId shared = gated_feed_forward(graph, x, w.shared, UnaryKind::kSilu);         // [n_rows, n_embd]
  const ValueId gate = graph.unary(graph.matmul(x, *w.shared_gate), UnaryKind::kSigmoid);  // [n_rows, 1]
  return graph.add(routed, graph.mul(shared, gate));
}

}  // namespace infer
