#include "src/model/blocks/in_and_out.h"

namespace infer {
namespace {

constexpr std::string_view kPositions = "position_embd.weight";

}  // namespace

const Weight* declare_embedding(WeightSet& weights, const ModelConfig& config) {
  return weights.require(kInputLayer, WeightRole::kEmbedding, "token_embd.weight", {config.n_vocab, config.n_embd});
}

const Weight* require_positions(WeightSet& weights, const ModelConfig& config) {
  return weights.require(kInputLayer, WeightRole::kEmbedding, kPositions, {config.context_length, config.n_embd});
}

const Weight* declare_positions(WeightSet& weights, const ModelConfig& config) {
  return weights.optional(kInputLayer, WeightRole::kEmbedding, kPositions, {config.context_length, config.n_embd});
}

const Weight* declare_rope_factors(WeightSet& weights, const ModelConfig& config) {
  return weights.optional(kInputLayer, WeightRole::kRope, "rope_freqs.weight", {config.rope.n_dims / 2});
}

const Weight* declare_long_rope_factors(WeightSet& weights, const ModelConfig& config) {
  const bool beyond = config.context_length > config.rope.original_context;
  const Weight* factors =
      weights.optional(kInputLayer, WeightRole::kRope,
                       beyond ? "rope_factors_long.weight" : "rope_factors_short.weight", {config.rope.n_dims / 2});
  if (!factors) return declare_rope_factors(weights, config);
  weights.ignore(kInputLayer, beyond ? "rope_factors_short.weight" : "rope_factors_long.weight");
  return factors;
}

const Weight* declare_token_type(WeightSet& weights, const ModelConfig& config) {
  const int n = static_cast<int>(weights.rows(kInputLayer, "token_types.weight"));
  if (n == 0) return nullptr;
  return weights.require_parts(kInputLayer, WeightRole::kEmbedding, "token_types.weight", n, {config.n_embd}).front();
}

Linear declare_head(WeightSet& weights, const ModelConfig& config, const Weight& embedding) {
  Linear head;
  head.weight = weights.optional(kOutputLayer, WeightRole::kOutput, "output.weight", {config.n_vocab, config.n_embd});
  if (!head.weight) head.weight = weights.share(kOutputLayer, WeightRole::kOutput, embedding);
  head.bias = weights.optional(kOutputLayer, WeightRole::kOutput, "output.bias", {config.n_vocab});
  return head;
}

ValueId embed(Graph& graph, const Weight& embedding) {
  graph.set_layer(kInputLayer);
  return graph.name(graph.embed(embedding), "embedding");
}

ValueId embed(Graph& graph, const Weight& embedding, const Weight* positions) {
  const ValueId x = embed(graph, embedding);
  return positions ? graph.add(x, graph.embed(*positions, RowsBy::kPosition)) : x;
}

ValueId head_logits(Graph& graph, ValueId hidden, const Linear& head) {
  return linear(graph, graph.view_logits_rows(hidden), head);
}

ValueId soft_cap(Graph& graph, ValueId x, float cap) {
  if (cap == 0) return x;
  return graph.scale(graph.unary(graph.scale(x, 1 / cap), UnaryKind::kTanh), cap);
}

ModelOutputs model_outputs(Graph& graph, ValueId hidden, ValueId logits) {
  return {.logits = graph.name(logits, "logits"), .hidden = graph.name(hidden, "result_norm")};
}

ModelOutputs model_outputs(Graph& graph, ValueId hidden, ValueId logits, const ModelConfig& config, ValueId state) {
  ModelOutputs outputs = model_outputs(graph, hidden, logits);
  if (config.n_prediction_layers > 0) outputs.state = state;
  return outputs;
}

ModelOutputs encoder_outputs(Graph& graph, ValueId hidden) { return {.hidden = graph.name(hidden, "result_norm")}; }

}  // namespace infer
