// Alternating updates (https://arxiv.org/abs/2301.13310) as in Gemma 3n: the residual has several streams. A layer
// predicts all of them, computes only the first, and corrects the others by the error of the first one's prediction.
// Streams are [n_rows, n_streams, n_embd].
#pragma once

#include <vector>

#include "src/model/blocks/linear.h"
#include "src/model/config.h"

namespace infer {

// The weights of one layer.
struct AltupWeights {
  Linear router;                        // [n_streams, n_embd]
  const Weight* router_norm = nullptr;  // [n_embd]
  Linear predict;                       // [n_streams * n_streams, n_streams]
  Linear correct;                       // [n_streams, n_streams]
};

AltupWeights declare_altup(WeightSet& weights, const ModelConfig& config, int layer, int64_t n_streams);

// streams -> [n_rows, n_embd]: a view of one of them.
ValueId stream_of(Graph& graph, ValueId streams, int64_t stream);
// Selects the output rows.
ValueId select_stream_rows(Graph& graph, ValueId streams);

// x [n_tokens, n_embd] -> streams: x itself, and its product with each matrix [n_embd, n_embd], rescaled to the RMS of
// x.
ValueId make_streams(Graph& graph, ValueId x, const std::vector<const Weight*>& matrices);
// streams -> [n_rows, n_embd]: the mean of the first stream and of each other's product with its matrix [n_embd,
// n_embd], rescaled to the RMS of the first.
ValueId merge_streams(Graph& graph, ValueId streams, const std::vector<const Weight*>& matrices);

// streams -> streams.
ValueId predict_streams(Graph& graph, ValueId streams, const AltupWeights& w, float eps);
// predicted streams, and the computed first one [n_rows, n_embd] -> streams.
ValueId correct_streams(Graph& graph, ValueId predicted, ValueId computed, const AltupWeights& w, float eps);
// Adds x [n_rows, n_embd] to all streams but the first.
ValueId add_to_other_streams(Graph& graph, ValueId streams, ValueId x);

}  // namespace infer
