// A decoder of pre-norm blocks, the plan of the llama and qwen families:
//   x = embedding(tokens); for each layer: x += attention(norm(x)), x += feed_forward(norm(x)); logits = head(norm(x))
#pragma once

#include <functional>
#include <vector>

#include "src/model/blocks.h"
#include "src/model/model.h"

namespace infer {

struct DecoderWeights {
  struct Layer {
    const Weight* attn_norm = nullptr;  // [n_embd]
    AttentionWeights attention;
    const Weight* ffn_norm = nullptr;  // [n_embd]
  };
  const Weight* embedding = nullptr;     // [n_vocab, n_embd]
  const Weight* rope_factors = nullptr;  // [rope.n_dims / 2], optional, left to the architecture
  std::vector<Layer> layers;             // [n_layer]
  const Weight* output_norm = nullptr;   // [n_embd]
  const Weight* output = nullptr;        // [n_vocab, n_embd], the embedding's data where the file has no head
  const Weight* output_bias = nullptr;   // [n_vocab], optional
};

// Everything but the feed forward parts.
DecoderWeights declare_decoder(WeightSet& weights, const ModelConfig& config, HeadNorms norms);

struct DecoderOptions {
  bool interleaved_rope = false;
  // Adds the feed forward part of a layer: normed input [rows, n_embd] -> [rows, n_embd].
  std::function<ValueId(Graph& graph, int layer, ValueId x)> feed_forward;
};

ModelOutputs build_decoder(Graph& graph, const Model& model, const DecoderWeights& weights,
                           const DecoderOptions& options);

}  // namespace infer
