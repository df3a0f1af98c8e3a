// gemma2: a sliding window in every other layer, norms also after attention and feed-forward, soft caps on attention
// scores and logits.
#include <cmath>

#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class Gemma2 final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_rms_norm_eps(reader);
    config.rope = read_rope(reader, config);
    read_windows(reader, config, 4096, 2);
    reader.only("use_parallel_residual", {0});
    read_no_experts(reader);
    // Only the 27B model does not scale by the head size.
    const int scaled_by = config.n_layer == 46 ? config.n_embd / config.layers[0].n_head : config.key_dim;
    attention_scale_ = 1 / std::sqrt(static_cast<float>(scaled_by));
    attention_cap_ = static_cast<float>(reader.number("attn_logit_softcapping", 1e-3, 1e6, 50));
    logits_cap_ = static_cast<float>(reader.number("final_logit_softcapping", 1e-3, 1e6, 30));
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    embedding_ = declare_embedding(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      w.attn = declare_joined_attention(weights, config, i);
      w.attn_post_norm = declare_norm(weights, i, "post_attention_norm", config.n_embd);
      w.ffn_norm = declare_norm(weights, i, "ffn_norm", config.n_embd);
      w.ffn = declare_gated_feed_forward(weights, config, i);
      w.ffn_post_norm = declare_norm(weights, i, "post_ffw_norm", config.n_embd);
    }
    output_norm_ = declare_norm(weights, kOutputLayer, "output_norm", config.n_embd);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = g.scale(embed(g, *embedding_), std::sqrt(static_cast<float>(config.n_embd)));  // [n_tokens, n_embd]
    const ValueId table = g.rope_table(config.rope);  // [n_tokens, rope.n_dims / 2, 2]
    const ValueId window_table = g.rope_table(config.rope_window);
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      const int window = config.layers[i].window;
      const AttentionParams params = {.scale = attention_scale_, .window = window, .softcap = attention_cap_};
      ValueId h = named(g, i, "attn_norm", g.rms_norm(x, w.attn_norm, eps));  // [n_tokens, n_embd]
      Heads heads = project_heads(g, h, w.attn, config, i);
      rope_neox(g, heads, window > 0 ? window_table : table);
      h = attention(g, heads, model.cache_desc(i, cache), params);  // [n_tokens, n_head * value_dim]
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);  // [n_outputs, n_head * value_dim]
        x = g.select_rows(x);  // [n_outputs, n_embd]
      }
      named(g, i, "attn_heads", h);
      h = named(g, i, "attn_out", linear(g, h, w.attn.out));  // [n_rows, n_embd]
      h = g.rms_norm(h, w.attn_post_norm, eps);               // [n_rows, n_embd]
      x = g.add(x, h);                                        // [n_rows, n_embd]

      h = named(g, i, "ffn_norm", g.rms_norm(x, w.ffn_norm, eps));  // [n_rows, n_embd]
      h = gated_feed_forward(g, h, w.ffn, UnaryKind::kGeluTanh);    // [n_rows, n_embd]
      h = g.rms_norm(h, w.ffn_post_norm, eps);                      // [n_rows, n_embd]
      x = named(g, i, "out", g.add(x, named(g, i, "ffn_out", h)));  // [n_rows, n_embd]
    }
    g.set_layer(kOutputLayer);
    const ValueId hidden = g.rms_norm(x, output_norm_, eps);                         // [n_outputs, n_embd]
    const ValueId logits = soft_cap(g, head_logits(g, hidden, head_), logits_cap_);  // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits);
  }

 private:
  struct Layer {
    const Weight* attn_norm = nullptr;  // [n_embd]
    AttentionWeights attn;
    const Weight* attn_post_norm = nullptr;  // [n_embd]
    const Weight* ffn_norm = nullptr;        // [n_embd]
    GatedFeedForwardWeights ffn;
    const Weight* ffn_post_norm = nullptr;  // [n_embd]
  };

  const Weight* embedding_ = nullptr;    // [n_vocab, n_embd]
  std::vector<Layer> layers_;            // [n_layer]
  const Weight* output_norm_ = nullptr;  // [n_embd]
  Linear head_;                          // [n_vocab, n_embd]
  float attention_scale_ = 1;
  float attention_cap_ = 0;
  float logits_cap_ = 0;
};

}  // namespace

std::unique_ptr<Architecture> create_gemma2() { return std::make_unique<Gemma2>(); }

}  // namespace infer
