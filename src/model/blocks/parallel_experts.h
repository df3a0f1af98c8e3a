// The mixture of experts of Gemma 4, in parallel with a dense feed-forward on the same residual.
#pragma once

#include "src/model/blocks/experts.h"

namespace infer {

struct ParallelExpertsWeights {
  const Weight* dense_norm = nullptr;   // [n_embd], of the dense feed-forward's result
  const Weight* norm = nullptr;         // [n_embd], before the experts
  const Weight* post_norm = nullptr;    // [n_embd], of the experts' result
  const Weight* router_norm = nullptr;  // [n_embd]
  RouterWeights router;
  ExpertWeights experts;
  const Weight* factors = nullptr;  // [n_expert, 1, 1], on the experts' results; null if the file has none
};

ParallelExpertsWeights declare_parallel_experts(WeightSet& weights, const ModelConfig& config, int layer);

// The dense feed-forward's result [n_rows, n_embd] and the residual x [n_rows, n_embd] -> [n_rows, n_embd]: the sum of
// both normalized results.
ValueId add_parallel_experts(Graph& graph, ValueId dense, ValueId x, const ParallelExpertsWeights& w,
                             const ModelConfig& config);

}  // namespace infer
