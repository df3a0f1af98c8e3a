// Several parallel residual streams, as in Qwen4-Exp: a block reads the mean of the normalized streams, each value
// gated through a bottleneck, and adds its result to every stream with a separate weight. Unlike full hyper-connections
// (https://arxiv.org/abs/2409.19606), it does not mix streams. Shapes: streams [n_rows, n_stream, n_embd].
#pragma once

#include "src/model/blocks/linear.h"

namespace infer {

struct GatedStreamWeights {
  const Weight* norm = nullptr;  // [n_stream * n_embd]
  Linear down;                   // [rank, n_stream * n_embd]
  Linear up;                     // [n_stream * n_embd, rank]
  Linear write;                  // [n_stream, n_stream * n_embd]; empty for the output
};

// Declares the tensors NAME_norm, NAME_down, NAME_up and NAME_inject.
GatedStreamWeights declare_gated_streams(WeightSet& weights, int layer, std::string_view name, int64_t n_stream,
                                         int64_t n_embd, int64_t rank);
// The same without NAME_inject, for the output.
GatedStreamWeights declare_gated_output(WeightSet& weights, std::string_view name, int64_t n_stream, int64_t n_embd,
                                        int64_t rank);

struct GatedStreamInput {
  ValueId x;                 // [n_rows, n_embd], the block's input
  ValueId write = kNoValue;  // [n_rows, n_stream, 1]; none for the output
};
GatedStreamInput read_gated_streams(Graph& graph, ValueId streams, const GatedStreamWeights& w, float eps);
// y [n_rows, n_embd] is the block's result -> the new streams.
ValueId write_gated_streams(Graph& graph, ValueId streams, ValueId y, ValueId write);

// The RMS norm of each stream, times weight [n_stream * n_embd] -> the streams.
ValueId norm_streams(Graph& graph, ValueId streams, const Weight* weight, float eps);

}  // namespace infer
