// Dense feed-forward networks, with and without a gate.
#pragma once

#include "src/model/blocks/linear.h"
#include "src/model/config.h"

namespace infer {

struct FeedForwardWeights {
  Linear up;    // [n_ff, n_embd]
  Linear down;  // [n_embd, n_ff]
};

struct GatedFeedForwardWeights {
  Linear gate;  // [n_ff, n_embd]
  Linear up;    // [n_ff, n_embd]
  Linear down;  // [n_embd, n_ff]
};

struct JoinedFeedForwardWeights {
  Linear gate_up;  // [2 * n_ff, n_embd]: the rows of the gate, then those of up
  Linear down;     // [n_embd, n_ff]
};

// These use the width in the layer's configuration, and throw Error(kInvalidFile) if the file does not give it.
FeedForwardWeights declare_feed_forward(WeightSet& weights, const ModelConfig& config, int layer);
GatedFeedForwardWeights declare_gated_feed_forward(WeightSet& weights, const ModelConfig& config, int layer);
JoinedFeedForwardWeights declare_joined_feed_forward(WeightSet& weights, const ModelConfig& config, int layer);

// x [n_rows, n_embd] -> [n_rows, n_embd]: down(activation(up(x))).
ValueId feed_forward(Graph& graph, ValueId x, const FeedForwardWeights& w, UnaryKind activation);
// A gated SiLU with f(gate) clamped to at most `limit` and up to [-limit, limit]; 0: no limit.
GatedActivationParams limited_swiglu(float limit);
// The same, but the gate's input is clamped instead of f(gate).
GatedActivationParams input_limited_swiglu(float limit);
// The activation of gpt-oss (https://arxiv.org/abs/2508.10925): a gated SiLU with a slope of 1.702, inputs clamped to
// 7, and 1 added to up.
GatedActivationParams clamped_swiglu();

// x [n_rows, n_embd] -> [n_rows, n_embd]: down(activation(gate(x)) * up(x)).
ValueId gated_feed_forward(Graph& graph, ValueId x, const GatedFeedForwardWeights& w,
                           const GatedActivationParams& activation);
ValueId gated_feed_forward(Graph& graph, ValueId x, const JoinedFeedForwardWeights& w,
                           const GatedActivationParams& activation);

}  // namespace infer
