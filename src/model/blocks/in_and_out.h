// Both ends of a model: token embedding and rope table before the layers, the output head after them.
#pragma once

#include "src/model/blocks/linear.h"
#include "src/model/config.h"
#include "src/model/model.h"

namespace infer {

const Weight* declare_embedding(WeightSet& weights, const ModelConfig& config);     // [n_vocab, n_embd]
const Weight* declare_rope_factors(WeightSet& weights, const ModelConfig& config);  // [rope.n_dims / 2], may be null
// [n_vocab, n_embd]; the embedding's data where the file has no head of its own.
Linear declare_head(WeightSet& weights, const ModelConfig& config, const Weight& embedding);

// -> [n_tokens, n_embd]. Nodes belong to kInputLayer from here on.
ValueId embed(Graph& graph, const Weight& embedding);

// hidden [n_outputs, n_embd], the state after the last norm -> [n_logits, n_vocab].
ValueId head_logits(Graph& graph, ValueId hidden, const Linear& head);
// Names both values.
ModelOutputs model_outputs(Graph& graph, ValueId hidden, ValueId logits);

}  // namespace infer
