// Manifold-constrained hyper-connections (https://arxiv.org/abs/2512.24880): several parallel residual streams. Each
// block reads a weighted sum of them and adds its result to all. The weights depend on the token; those that mix
// streams form a doubly stochastic matrix.
#pragma once

#include "src/model/blocks/linear.h"

namespace infer {

struct HyperConfig {
  int n_stream = 0;
  float eps = 0;  // added to weights and sums
  int sinkhorn_iterations = 0;
};

// The scores of a block: one per stream for reading, one per stream for writing, and one per pair of streams for
// mixing. For the output, only those for reading. n_scores is their total number.
struct HyperWeights {
  Linear scores;                 // [n_scores, n_stream * n_embd]
  const Weight* base = nullptr;  // [n_scores]
  std::vector<float> scales;     // of reading, writing and mixing
};

// Declares the tensors NAME_fn, NAME_base and NAME_scale.
HyperWeights declare_hyper_connection(WeightSet& weights, const HyperConfig& config, int layer, std::string_view name,
                                      int64_t n_embd);
// The same for the output.
HyperWeights declare_hyper_output(WeightSet& weights, const HyperConfig& config, std::string_view name, int64_t n_embd);

// Copies x [n_tokens, n_embd] to all streams -> [n_tokens, n_stream, n_embd].
ValueId make_equal_streams(Graph& graph, ValueId x, int n_stream);

struct HyperInput {
  ValueId x;      // [n_rows, n_embd], the block's input
  ValueId write;  // [n_rows, n_stream, 1]
  ValueId mix;    // [n_rows, n_stream, n_stream]
};

// streams [n_rows, n_stream, n_embd].
HyperInput read_streams(Graph& graph, ValueId streams, const HyperWeights& w, const HyperConfig& config,
                        float norm_eps);
// y [n_rows, n_embd] is the block's result -> the new streams.
ValueId write_streams(Graph& graph, ValueId streams, ValueId y, const HyperInput& input);
// -> [n_rows, n_embd].
ValueId merge_hyper_streams(Graph& graph, ValueId streams, const HyperWeights& w, const HyperConfig& config,
                            float norm_eps);
// Keeps only the output rows.
void select_hyper_rows(Graph& graph, HyperInput& input);

}  // namespace infer
