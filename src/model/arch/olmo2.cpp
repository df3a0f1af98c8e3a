// olmo2: OLMo 2 and 3. Norms only after attention and feed-forward, and over all heads of queries and of keys. The
// sliding-window layers of OLMo 3 do not scale positions.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class Olmo2 final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_rms_norm_eps(reader);
    config.rope = read_rope(reader, config);
    read_windows(reader, config, 0, 4);
    reader.only("use_parallel_residual", {0});
    read_no_experts(reader);
    config.rope_window = without_scaling(config.rope);
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    embedding_ = declare_embedding(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn = declare_joined_attention(weights, config, i);
      const LayerConfig& l = config.layers[i];
      w.q_norm = declare_norm(weights, i, "attn_q_norm", l.n_head * config.key_dim);
      w.k_norm = declare_norm(weights, i, "attn_k_norm", l.n_kv_head * config.key_dim);
      w.attn_post_norm = declare_norm(weights, i, "post_attention_norm", config.n_embd);
      w.ffn = declare_gated_feed_forward(weights, config, i);
      w.ffn_post_norm = declare_norm(weights, i, "post_ffw_norm", config.n_embd);
    }
    output_norm_ = declare_norm(weights, kOutputLayer, "output_norm", config.n_embd);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = embed(g, *embedding_);                // [n_tokens, n_embd]
    const ValueId table = g.rope_table(config.rope);  // [n_tokens, rope.n_dims / 2, 2]
    const ValueId window_table = g.rope_table(config.rope_window);
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      const int window = config.layers[i].window;
      const AttentionParams params = {.scale = attention_scale(config), .window = window};
      Heads heads = project_heads(g, x, w.attn, config, i);
      rms_norm_rows(g, heads, w.q_norm, w.k_norm, eps);
      rope_neox(g, heads, window > 0 ? window_table : table);
      ValueId h = attention(g, heads, model.cache_desc(i, cache), params);  // [n_tokens, n_head * value_dim]
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);  // [n_outputs, n_head * value_dim]
        x = g.select_rows(x);  // [n_outputs, n_embd]
      }
      named(g, i, "attn_heads", h);
      h = named(g, i, "attn_out", linear(g, h, w.attn.out));  // [n_rows, n_embd]
      h = g.rms_norm(h, w.attn_post_norm, eps);               // [n_rows, n_embd]
      x = g.add(x, h);                                        // [n_rows, n_embd]

      h = gated_feed_forward(g, x, w.ffn, UnaryKind::kSilu);        // [n_rows, n_embd]
      h = g.rms_norm(h, w.ffn_post_norm, eps);                      // [n_rows, n_embd]
      x = named(g, i, "out", g.add(x, named(g, i, "ffn_out", h)));  // [n_rows, n_embd]
    }
    g.set_layer(kOutputLayer);
    const ValueId hidden = g.rms_norm(x, output_norm_, eps);  // [n_outputs, n_embd]
    const ValueId logits = head_logits(g, hidden, head_);     // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits);
  }

 private:
  struct Layer {
    AttentionWeights attn;
    const Weight* q_norm = nullptr;          // [n_head * key_dim]
    const Weight* k_norm = nullptr;          // [n_kv_head * key_dim]
    const Weight* attn_post_norm = nullptr;  // [n_embd]
    GatedFeedForwardWeights ffn;
    const Weight* ffn_post_norm = nullptr;  // [n_embd]
  };

  const Weight* embedding_ = nullptr;    // [n_vocab, n_embd]
  std::vector<Layer> layers_;            // [n_layer]
  const Weight* output_norm_ = nullptr;  // [n_embd]
  Linear head_;                          // [n_vocab, n_embd]
};

}  // namespace

std::unique_ptr<Architecture> create_olmo2() { return std::make_unique<Olmo2>(); }

}  // namespace infer
