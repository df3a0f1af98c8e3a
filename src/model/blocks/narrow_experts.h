// The feed-forward of Kimi K3: dense, or routed experts that work in a smaller space, plus a shared one; gate and up
// are capped by a tanh.
#pragma once

#include "src/model/blocks/experts.h"

namespace infer {

struct NarrowExpertsWeights {
  GatedFeedForwardWeights dense;  // empty in layers with experts
  RouterWeights router;           // this and the rest are empty in dense layers
  Linear narrow;                  // [width, n_embd], empty if experts have the full width
  ExpertWeights experts;
  const Weight* norm = nullptr;    // [width], of the experts' sum, null if the file has none
  Linear widen;                    // [n_embd, width], empty if experts have the full width
  GatedFeedForwardWeights shared;  // empty without a shared expert
};

// `width` 0: that of the model.
NarrowExpertsWeights declare_narrow_experts(WeightSet& weights, const ModelConfig& config, int layer, int64_t width);

// gate_cap tanh(gate / gate_cap) sigmoid(gate) up_cap tanh(up / up_cap); with an up_cap of 0, up is not capped.
struct CappedGate {
  float gate_cap = 1, up_cap = 0;
};

// x [n_rows, n_embd] -> [n_rows, n_embd].
ValueId narrow_experts(Graph& graph, ValueId x, const NarrowExpertsWeights& w, const ModelConfig& config,
                       const CappedGate& activation);

}  // namespace infer
