// The layers of gemma3 and gemma-embedding: NeoX rope, normalized heads, norms before and after attention and
// feed-forward, and a final norm.
#pragma once

#include <vector>

#include "src/model/blocks/attention.h"
#include "src/model/blocks/feed_forward.h"
#include "src/model/model.h"

namespace infer {

class GemmaLayers {
 public:
  void declare(WeightSet& weights, const ModelConfig& config);

  // The hidden states of the output rows, after the final norm: [n_outputs, n_embd]. Layers with a window use
  // rope_window, the others rope.
  ValueId build(Graph& graph, const Model& model, CacheTypes cache, float attention_scale) const;

  const Weight& embedding() const { return *embedding_; }  // [n_vocab, n_embd]

 private:
  struct Layer {
    const Weight* attn_norm = nullptr;  // [n_embd]
    AttentionWeights attn;
    const Weight* q_norm = nullptr;          // [key_dim]
    const Weight* k_norm = nullptr;          // [key_dim]
    const Weight* attn_post_norm = nullptr;  // [n_embd]
    const Weight* ffn_norm = nullptr;        // [n_embd]
    GatedFeedForwardWeights ffn;
    const Weight* ffn_post_norm = nullptr;  // [n_embd]
  };

  const Weight* embedding_ = nullptr;
  std::vector<Layer> layers_;            // [n_layer]
  const Weight* output_norm_ = nullptr;  // [n_embd]
};

}  // namespace infer
