// gemma3: five layers with a window to one without. The two kinds have rotary bases of their own, and only the layers
// without a window scale positions. Every head of queries and keys is normalized before the rotation.
// gemma-embedding: an encoder of the same layers, possibly with two linear layers behind them.
#include <cmath>

#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

// The layers that both have.
class GemmaLayers : public Architecture {
 protected:
  void declare_layers(WeightSet& weights, const ModelConfig& config) {
    embedding_ = declare_embedding(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      w.attn = declare_joined_attention(weights, config, i);
      w.q_norm = declare_norm(weights, i, "attn_q_norm", config.key_dim);
      w.k_norm = declare_norm(weights, i, "attn_k_norm", config.key_dim);
      w.attn_post_norm = declare_norm(weights, i, "post_attention_norm", config.n_embd);
      w.ffn_norm = declare_norm(weights, i, "ffn_norm", config.n_embd);
      w.ffn = declare_gated_feed_forward(weights, config, i);
      w.ffn_post_norm = declare_norm(weights, i, "post_ffw_norm", config.n_embd);
    }
    output_norm_ = declare_norm(weights, kOutputLayer, "output_norm", config.n_embd);
  }

  // -> [n_outputs, n_embd], after the final norm.
  ValueId build_layers(Graph& g, const Model& model, CacheTypes cache) const {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = g.scale(embed(g, *embedding_), std::sqrt(static_cast<float>(config.n_embd)));  // [n_tokens, n_embd]
    const ValueId table = g.rope_table(config.rope);  // [n_tokens, rope.n_dims / 2, 2]
    const ValueId window_table = g.rope_table(config.rope_window);
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      const int window = config.layers[i].window;
      const AttentionParams params = {.scale = attention_scale_, .causal = config.causal, .window = window};
      ValueId h = named(g, i, "attn_norm", g.rms_norm(x, w.attn_norm, eps));  // [n_tokens, n_embd]
      Heads heads = project_heads(g, h, w.attn, config, i);
      rms_norm_heads(g, heads, w.q_norm, w.k_norm, eps);
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
    return g.rms_norm(x, output_norm_, eps);
  }

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

  std::vector<Layer> layers_;            // [n_layer]
  const Weight* output_norm_ = nullptr;  // [n_embd]

 protected:
  const Weight* embedding_ = nullptr;  // [n_vocab, n_embd]
  float attention_scale_ = 1;
};

class Gemma3 final : public GemmaLayers {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_rms_norm_eps(reader);
    config.rope = read_rope(reader, config);
    read_windows(reader, config, 0, 6);
    reader.only("use_parallel_residual", {0});
    read_no_experts(reader);
    config.rope_window = without_scaling(config.rope);
    config.rope_window.freq_base = static_cast<float>(reader.number("rope.freq_base_swa", 1.001, 1e15, 10000));
    // The 27B model is the only one that does not scale by the head size.
    const int scaled_by = config.n_layer == 62 ? config.n_embd / config.layers[0].n_head : config.key_dim;
    attention_scale_ = 1 / std::sqrt(static_cast<float>(scaled_by));
    logits_cap_ = static_cast<float>(reader.number("final_logit_softcapping", 0, 1e6, 0));
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    declare_layers(weights, config);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ValueId hidden = build_layers(g, model, cache);                            // [n_outputs, n_embd]
    const ValueId logits = soft_cap(g, head_logits(g, hidden, head_), logits_cap_);  // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits);
  }

 private:
  Linear head_;           // [n_vocab, n_embd]
  float logits_cap_ = 0;  // 0: none
};

class GemmaEmbedding final : public GemmaLayers {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_rms_norm_eps(reader);
    require_encoder(reader, config);
    config.rope = read_rope(reader, config);
    read_windows(reader, config, 0, 6);
    read_no_experts(reader);
    attention_scale_ = attention_scale(config);
    for (const char* key : {"dense_2_feat_in", "dense_3_feat_out"}) {  // absent without the linear layers
      reader.only(key, {0, static_cast<double>(config.n_embd)});
    }
    n_inner_ = reader.count("dense_2_feat_out", 0, kMaxWidth, 0);
    reader.only("dense_3_feat_in", {0, static_cast<double>(n_inner_)});
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    declare_layers(weights, config);
    weights.ignore(kOutputLayer, "output.weight");
    if (!weights.has(kOutputLayer, "dense_2.weight")) return;
    dense_2_ = declare_linear(weights, kOutputLayer, WeightRole::kOutput, "dense_2", n_inner_, config.n_embd);
    dense_3_ = declare_linear(weights, kOutputLayer, WeightRole::kOutput, "dense_3", config.n_embd, n_inner_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    ValueId x = build_layers(g, model, cache);  // [n_outputs, n_embd]
    // The model applies them to the mean. They are linear, so the mean of their results is the same.
    if (dense_2_.weight) x = linear(g, linear(g, x, dense_2_), dense_3_);  // [n_outputs, n_embd]
    return encoder_outputs(g, x);
  }

 private:
  int n_inner_ = 0;  // width between the linear layers
  Linear dense_2_;   // [n_inner, n_embd], or empty
  Linear dense_3_;   // [n_embd, n_inner], or empty
};

}  // namespace

std::unique_ptr<Architecture> create_gemma3() { return std::make_unique<Gemma3>(); }
std::unique_ptr<Architecture> create_gemma_embedding() { return std::make_unique<GemmaEmbedding>(); }

}  // namespace infer
