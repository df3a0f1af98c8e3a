#include "src/model/blocks/per_layer_embedding.h"

#include <cmath>

namespace infer {
namespace {

constexpr WeightRole kPerLayerRole = WeightRole::kResidual;

}  // namespace

PerLayerInputWeights declare_per_layer_inputs(WeightSet& weights, const ModelConfig& config, int64_t width) {
  const int64_t all = config.n_layer * width;
  PerLayerInputWeights w;
  w.table = weights.require(kInputLayer, WeightRole::kEmbedding, "per_layer_token_embd.weight", {config.n_vocab, all});
  w.project = declare_linear(weights, kInputLayer, kPerLayerRole, "per_layer_model_proj", all, config.n_embd);
  w.norm = declare_norm(weights, kInputLayer, "per_layer_proj_norm", width);
  return w;
}

ValueId per_layer_inputs(Graph& graph, ValueId embedding, const PerLayerInputWeights& w, const ModelConfig& config) {
  const int64_t width = w.norm->desc.shape[0], all = config.n_layer * width;
  const ValueId selected = graph.scale(graph.embed(*w.table), std::sqrt(static_cast<float>(width)));
  ValueId x = linear(graph, embedding, w.project);  // [n_tokens, n_layer * width]
  x = graph.scale(x, 1 / std::sqrt(static_cast<float>(config.n_embd)));
  x = graph.rms_norm(graph.reshape(x, {graph.token_bucket(), config.n_layer, width}), w.norm, config.norm_eps);
  x = graph.add(graph.reshape(x, {graph.token_bucket(), all}), selected);
  return graph.scale(x, 1 / std::sqrt(2.0f));
}

PerLayerWeights declare_per_layer(WeightSet& weights, const ModelConfig& config, int layer, int64_t width) {
  PerLayerWeights w;
  w.gate = declare_linear(weights, layer, kPerLayerRole, "inp_gate", width, config.n_embd);
  w.project = declare_linear(weights, layer, kPerLayerRole, "proj", config.n_embd, width);
  w.post_norm = declare_norm(weights, layer, "post_norm", config.n_embd);
  return w;
}

ValueId per_layer_embedding(Graph& graph, ValueId x, ValueId input, const PerLayerWeights& w, float eps) {
  const ValueId gated = graph.gated_activation(linear(graph, x, w.gate), input, UnaryKind::kGeluTanh);
  return graph.rms_norm(linear(graph, gated, w.project), w.post_norm, eps);
}

}  // namespace infer
