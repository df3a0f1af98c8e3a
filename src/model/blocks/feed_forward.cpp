#include "src/model/blocks/feed_forward.h"

#include "ggml-like/message.h"

namespace infer {
namespace {

int64_t width_of(const ModelConfig& config, int layer) {
  const int n_ff = config.layers[layer].n_ff;
  if (n_ff == 0) {
    reject_value(concat(config.architecture, ".feed_forward_length"), "a number", "none");
  }
  return n_ff;
}

}  // namespace

FeedForwardWeights declare_feed_forward(WeightSet& weights, const ModelConfig& config, int layer) {
  const WeightRole role = WeightRole::kFeedForward;
  const int64_t d = config.n_embd, f = width_of(config, layer);
  FeedForwardWeights w;
  w.up = declare_linear(weights, layer, role, "ffn_up", f, d);
  w.down = declare_linear(weights, layer, role, "ffn_down", d, f);
  return w;
}

GatedFeedForwardWeights declare_gated_feed_forward(WeightSet& weights, const ModelConfig& config, int layer) {
  const WeightRole role = WeightRole::kFeedForward;
  const int64_t d = config.n_embd, f = width_of(config, layer);
  GatedFeedForwardWeights w;
  w.gate = declare_linear(weights, layer, role, "ffn_gate", f, d);
  w.up = declare_linear(weights, layer, role, "ffn_up", f, d);
  w.down = declare_linear(weights, layer, role, "ffn_down", d, f);
  return w;
}

JoinedFeedForwardWeights declare_joined_feed_forward(WeightSet& weights, const ModelConfig& config, int layer) {
  const WeightRole role = WeightRole::kFeedForward;
  const int64_t d = config.n_embd, f = width_of(config, layer);
  JoinedFeedForwardWeights w;
  w.gate_up = declare_linear(weights, layer, role, "ffn_up", 2 * f, d);
  w.down = declare_linear(weights, layer, role, "ffn_down", d, f);
  return w;
}

ValueId feed_forward(Graph& graph, ValueId x, const FeedForwardWeights& w, UnaryKind activation) {
  const ValueId up = linear(graph, x, w.up);                  // [n_rows, n_ff]
  return linear(graph, graph.unary(up, activation), w.down);  // [n_rows, n_embd]
}

GatedActivationParams limited_swiglu(float limit) {
  GatedActivationParams params = UnaryKind::kSilu;
  if (limit > 1e-6f) params.activation_limit = params.up_limit = limit;
  return params;
}

GatedActivationParams input_limited_swiglu(float limit) {
  GatedActivationParams params = UnaryKind::kSilu;
  if (limit > 1e-6f) params.gate_limit = params.up_limit = limit;
  return params;
}

GatedActivationParams clamped_swiglu() {
  GatedActivationParams params = UnaryKind::kGeluQuick;
  params.gate_limit = params.up_limit = 7;
  params.up_offset = 1;
  return params;
}

ValueId gated_feed_forward(Graph& graph, ValueId x, const GatedFeedForwardWeights& w,
                           const GatedActivationParams& activation) {
  const ValueId gate = linear(graph, x, w.gate);                               // [n_rows, n_ff]
  const ValueId up = linear(graph, x, w.up);                                   // [n_rows, n_ff]
  return linear(graph, graph.gated_activation(gate, up, activation), w.down);  // [n_rows, n_embd]
}

ValueId gated_feed_forward(Graph& graph, ValueId x, const JoinedFeedForwardWeights& w,
                           const GatedActivationParams& activation) {
  const ValueId both = linear(graph, x, w.gate_up);  // [n_rows, 2 * n_ff]
  const int64_t n_ff = w.down.weight->desc.shape[1];
  const ValueId gate = graph.view_columns(both, 0, n_ff);   // [n_rows, n_ff]
  const ValueId up = graph.view_columns(both, n_ff, n_ff);  // [n_rows, n_ff]
  return linear(graph, graph.gated_activation(gate, up, activation), w.down);
}

}  // namespace infer
