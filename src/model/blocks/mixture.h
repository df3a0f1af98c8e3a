// Mixtures as in Qwen2-MoE and its successors: routed experts plus a shared one, gated by a sigmoid.
#pragma once

#include "src/model/blocks/experts.h"

namespace infer {

// Reads the sizes of the experts, if there are any; the weights of each token's experts sum to 1.
void read_mixture(ConfigReader& reader, ModelConfig& config);

struct MixtureWeights {
  RouterWeights router;
  ExpertWeights experts;
  GatedFeedForwardWeights shared;
  const Weight* shared_gate = nullptr;  // [1, n_embd]
};

MixtureWeights declare_mixture(WeightSet& weights, const ModelConfig& config, int layer);
// x [n_rows, n_embd] -> the same shape.
ValueId mixture(Graph& graph, ValueId x, const MixtureWeights& w, const ModelConfig& config);

}  // namespace infer
