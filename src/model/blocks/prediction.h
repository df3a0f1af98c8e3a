// Input and output of a model that may be a prediction layer (ModelPart, https://arxiv.org/abs/2412.19437, section
// 2.2).
#pragma once

#include <functional>

#include "src/model/blocks/linear.h"
#include "src/model/config.h"

namespace infer {

bool predicts(const ModelConfig& config);

struct ModelInput {
  const Weight* embedding = nullptr;       // [n_vocab, n_embd]
  const Weight* embedding_norm = nullptr;  // [n_embd]; this and the rest are null in the trunk
  const Weight* hidden_norm = nullptr;     // [n_embd]
  Linear joined = {};                      // [n_embd, 2 * n_embd]
};

ModelInput declare_input(WeightSet& weights, const ModelConfig& config);
// The norm before the head, [n_embd]; a prediction layer may have its own.
const Weight* declare_output_norm(WeightSet& weights, const ModelConfig& config);
// [n_vocab, n_embd]: the prediction layer's own head, else the file's, else the embedding.
Linear declare_head(WeightSet& weights, const ModelConfig& config, const ModelInput& input);

// -> [n_tokens, n_embd]: the embedding, which a prediction layer combines with the hidden state of the token before.
// Later nodes belong to kInputLayer.
ValueId embed(Graph& graph, const ModelInput& input, float eps);
// The same for models with a norm other than the RMS norm. x [n_tokens, n_embd], weight [n_embd] -> the shape of x.
using NormFunction = std::function<ValueId(ValueId x, const Weight* weight)>;
ValueId embed(Graph& graph, const ModelInput& input, const NormFunction& norm);

}  // namespace infer
