// Embeddings of hashed n-grams (https://arxiv.org/abs/2601.07372) in a model of several residual streams: what a table
// holds of the last tokens is added to each stream, gated by how well it fits the stream, and convolved with what was
// added before.
#pragma once

#include "src/model/blocks/gated_streams.h"
#include "src/model/config.h"

namespace infer {

struct NgramConfig {
  int layer = -1;      // in front of which the embedding is added; -1: none
  int dim = 0;         // of a row of the table
  int conv_width = 0;  // the convolution's dilation is the longest n-gram
  std::shared_ptr<const NgramTables> tables;

  int64_t conv_values(int64_t channels) const;  // of the state of the convolution
  int64_t rows() const;                         // of the table, at least
};

// Reads the `ple.` keys.
NgramConfig read_ngram_embedding(ConfigReader& reader, const ModelConfig& config);

struct NgramWeights {
  const Weight* table = nullptr;       // [rows, dim]
  Linear key;                          // [n_stream * n_embd, lookups * dim]
  Linear value;                        // [n_embd, lookups * dim]
  const Weight* key_norm = nullptr;    // [n_stream * n_embd]
  const Weight* query_norm = nullptr;  // [n_stream * n_embd]
  const Weight* conv_norm = nullptr;   // [n_stream * n_embd]
  const Weight* conv = nullptr;        // [n_stream * n_embd, conv_width]
};

NgramWeights declare_ngram_embedding(WeightSet& weights, const ModelConfig& config, const NgramConfig& ngrams,
                                     int64_t n_stream);
// streams [n_tokens, n_stream, n_embd] -> the same with the embedding added. `state` is that of the convolution.
ValueId add_ngram_embedding(Graph& graph, ValueId streams, const NgramWeights& w, const NgramConfig& ngrams, float eps,
                            const CacheDesc& ids, const CacheDesc& state);

}  // namespace infer
