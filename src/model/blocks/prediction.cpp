#include "src/model/blocks/prediction.h"

#include "src/model/blocks/in_and_out.h"

namespace infer {

bool predicts(const ModelConfig& config) { return config.part == ModelPart::kPrediction; }

ModelInput declare_input(WeightSet& weights, const ModelConfig& config) {
  const int64_t d = config.n_embd;
  if (!predicts(config)) return {.embedding = declare_embedding(weights, config)};
  ModelInput input;
  input.embedding =
      weights.optional(0, WeightRole::kEmbedding, "nextn.embed_tokens.weight", {config.n_vocab, config.n_embd});
  if (!input.embedding) input.embedding = declare_embedding(weights, config);
  input.embedding_norm = declare_norm(weights, 0, "nextn.enorm", d);
  input.hidden_norm = declare_norm(weights, 0, "nextn.hnorm", d);
  input.joined = declare_linear(weights, 0, WeightRole::kResidual, "nextn.eh_proj", d, 2 * d);
  return input;
}

const Weight* declare_output_norm(WeightSet& weights, const ModelConfig& config) {
  if (predicts(config)) {
    for (const std::string_view name : {"nextn.shared_head_norm.weight", "layer_output_norm.weight"}) {
      if (const Weight* own = weights.optional(0, WeightRole::kNorm, name, {config.n_embd})) return own;
    }
  }
  return declare_norm(weights, kOutputLayer, "output_norm", config.n_embd);
}

Linear declare_head(WeightSet& weights, const ModelConfig& config, const ModelInput& input) {
  Linear head;
  if (predicts(config)) {
    head.weight =
        weights.optional(0, WeightRole::kOutput, "nextn.shared_head_head.weight", {config.n_vocab, config.n_embd});
  }
  return head.weight ? head : declare_head(weights, config, *input.embedding);
}

ValueId embed(Graph& g, const ModelInput& input, float eps) {
  return embed(g, input, [&](ValueId x, const Weight* weight) { return g.rms_norm(x, weight, eps); });
}

ValueId embed(Graph& g, const ModelInput& input, const NormFunction& norm) {
  ValueId x = embed(g, *input.embedding);  // [n_tokens, n_embd]
  if (!input.joined.weight) return x;
  const int64_t t = g.value(x).desc.shape[0], d = g.value(x).desc.shape[1];
  x = norm(x, input.embedding_norm);                                            // [n_tokens, n_embd]
  const ValueId hidden = norm(g.step_hidden(d), input.hidden_norm);             // [n_tokens, n_embd]
  x = g.concat_columns(g.reshape(x, {t, 1, d}), g.reshape(hidden, {t, 1, d}));  // [n_tokens, 1, 2 * n_embd]
  return linear(g, g.reshape(x, {t, 2 * d}), input.joined);
}

}  // namespace infer
