// falcon: attention and feed-forward run in parallel, on the same layer norm or (40B) each on its own; NeoX rope, a
// tanh GELU without a gate.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class Falcon final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_layer_norm_eps(reader);
    config.rope = read_rope(reader, config);
    require_full_causal_attention(reader, config);
    reader.only("use_parallel_residual", {1});
    read_no_experts(reader);
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    embedding_ = declare_embedding(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_norm = declare_layer_norm(weights, i, "attn_norm", config.n_embd);
      w.attn = declare_joined_attention(weights, config, i);
      w.attn_norm_2 = weights.has(i, "attn_norm_2.weight")
                          ? declare_layer_norm(weights, i, "attn_norm_2", config.n_embd)
                          : w.attn_norm;
      w.ffn = declare_feed_forward(weights, config, i);
    }
    output_norm_ = declare_layer_norm(weights, kOutputLayer, "output_norm", config.n_embd);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = embed(g, *embedding_);                // [n_tokens, n_embd]
    const ValueId table = g.rope_table(config.rope);  // [n_tokens, rope.n_dims / 2, 2]
    const AttentionParams params = {.scale = attention_scale(config)};
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      ValueId h = named(g, i, "attn_norm", layer_norm(g, x, w.attn_norm, eps));  // [n_tokens, n_embd]
      ValueId ffn_in = h;                                                        // [n_tokens, n_embd]
      if (w.attn_norm_2.weight != w.attn_norm.weight) h = layer_norm(g, x, w.attn_norm_2, eps);
      Heads heads = project_heads(g, h, w.attn, config, i);
      rope_neox(g, heads, table);
      h = attention(g, heads, model.cache_desc(i, cache), params);  // [n_tokens, n_head * value_dim]
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);            // [n_outputs, n_head * value_dim]
        x = g.select_rows(x);            // [n_outputs, n_embd]
        ffn_in = g.select_rows(ffn_in);  // [n_outputs, n_embd]
      }
      named(g, i, "attn_heads", h);
      h = named(g, i, "attn_out", linear(g, h, w.attn.out));  // [n_rows, n_embd]
      x = g.add(x, h);                                        // [n_rows, n_embd]

      h = feed_forward(g, ffn_in, w.ffn, UnaryKind::kGeluTanh);     // [n_rows, n_embd]
      x = named(g, i, "out", g.add(x, named(g, i, "ffn_out", h)));  // [n_rows, n_embd]
    }
    g.set_layer(kOutputLayer);
    const ValueId hidden = layer_norm(g, x, output_norm_, eps);  // [n_outputs, n_embd]
    const ValueId logits = head_logits(g, hidden, head_);        // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits);
  }

 private:
  struct Layer {
    LayerNorm attn_norm;  // [n_embd]
    AttentionWeights attn;
    LayerNorm attn_norm_2;  // [n_embd], before attention; attn_norm if the file has only one norm
    FeedForwardWeights ffn;
  };

  const Weight* embedding_ = nullptr;  // [n_vocab, n_embd]
  std::vector<Layer> layers_;          // [n_layer]
  LayerNorm output_norm_;              // [n_embd]
  Linear head_;                        // [n_vocab, n_embd]
};

}  // namespace

std::unique_ptr<Architecture> create_falcon() { return std::make_unique<Falcon>(); }

}  // namespace infer
