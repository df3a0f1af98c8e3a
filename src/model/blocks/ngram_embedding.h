// Embeddings of hashed n-grams (https://arxiv.org/abs/2601.07372) in a model with several residual streams. The table
// entries for the last tokens are added to each stream, gated by how well they match it, plus a convolution over what
// was added for earlier tokens.
#pragma once

#include "src/model/blocks/gated_streams.h"
#include "src/model/config.h"

namespace infer {

struct NgramConfig {
  int layer = -1;      // the embedding is added before this layer; -1: none
  int dim = 0;         // of a row of the table
  int conv_width = 0;  // the convolution's dilation is the longest n-gram
  std::shared_ptr<const NgramTables> tables;

  int64_t conv_values(int64_t channels) const;  // of the state of the convolution
  int64_t rows() const;                         // the minimum number of rows of the table
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
