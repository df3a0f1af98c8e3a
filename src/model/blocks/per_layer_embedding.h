// Per-layer embeddings of Gemma 3n and Gemma 4: each layer adds a vector that depends on the token to its result,
// through a bottleneck of `width` values that is gated by the result.
#pragma once

#include "src/model/blocks/linear.h"
#include "src/model/config.h"

namespace infer {

// The weights shared by all layers.
struct PerLayerInputWeights {
  const Weight* table = nullptr;  // [n_vocab, n_layer * width]
  Linear project;                 // [n_layer * width, n_embd]
  const Weight* norm = nullptr;   // [width]
};

PerLayerInputWeights declare_per_layer_inputs(WeightSet& weights, const ModelConfig& config, int64_t width);

// embedding [n_tokens, n_embd], scaled -> [n_tokens, n_layer * width]: the inputs of all layers.
ValueId per_layer_inputs(Graph& graph, ValueId embedding, const PerLayerInputWeights& w, const ModelConfig& config);

// The weights of one layer.
struct PerLayerWeights {
  Linear gate;                        // [width, n_embd]
  Linear project;                     // [n_embd, width]
  const Weight* post_norm = nullptr;  // [n_embd]
};

PerLayerWeights declare_per_layer(WeightSet& weights, const ModelConfig& config, int layer, int64_t width);

// x [n_rows, n_embd] and the layer's input [n_rows, width] -> [n_rows, n_embd]: the vector to add.
ValueId per_layer_embedding(Graph& graph, ValueId x, ValueId input, const PerLayerWeights& w, float eps);

}  // namespace infer
