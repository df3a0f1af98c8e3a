// Both ends of a model: token embedding and rope table before the layers, the output head after them.
#pragma once

#include "src/model/blocks/linear.h"
#include "src/model/config.h"
#include "src/model/model.h"

namespace infer {

const Weight* declare_embedding(WeightSet& weights, const ModelConfig& config);  // [n_vocab, n_embd]
// position_embd.weight, [context_length, n_embd].
const Weight* require_positions(WeightSet& weights, const ModelConfig& config);
// The same, but null if the file has none.
const Weight* declare_positions(WeightSet& weights, const ModelConfig& config);
const Weight* declare_rope_factors(WeightSet& weights, const ModelConfig& config);  // [rope.n_dims / 2], may be null
// rope_factors_long.weight or rope_factors_short.weight, [rope.n_dims / 2], depending on the model's context; if the
// file has neither, rope_freqs.weight, which may be null.
const Weight* declare_long_rope_factors(WeightSet& weights, const ModelConfig& config);
// [n_vocab, n_embd]; shares the embedding's data if the file has no separate head
Linear declare_head(WeightSet& weights, const ModelConfig& config, const Weight& embedding);

// The first row of token_types.weight, [n_embd], which belongs to the first of two texts; null if the file has none.
const Weight* declare_token_type(WeightSet& weights, const ModelConfig& config);

// -> [n_tokens, n_embd]. Later nodes belong to kInputLayer.
ValueId embed(Graph& graph, const Weight& embedding);
// The same plus learned positions, if not null.
ValueId embed(Graph& graph, const Weight& embedding, const Weight* positions);

// hidden [n_outputs, n_embd], the state after the final norm -> [n_logits, n_vocab].
ValueId head_logits(Graph& graph, ValueId hidden, const Linear& head);
// cap * tanh(x / cap); just x if cap is 0.
ValueId soft_cap(Graph& graph, ValueId x, float cap);
// Names both values.
ModelOutputs model_outputs(Graph& graph, ValueId hidden, ValueId logits);
// The same for architectures whose prediction layers take `state`, [n_outputs, n_embd], which may differ from `hidden`.
ModelOutputs model_outputs(Graph& graph, ValueId hidden, ValueId logits, const ModelConfig& config, ValueId state);
ModelOutputs encoder_outputs(Graph& graph, ValueId hidden);

}  // namespace infer
