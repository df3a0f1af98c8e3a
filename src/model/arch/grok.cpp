// grok: a factor and a soft cap on attention scores, norms before and after attention and feed-forward, NeoX rope, and
// in every layer routed experts with a GELU gate, plus a dense feed-forward in Grok 2. Factors on embedding and logits.
#include <numbers>

#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

constexpr float kBetaFast = 8;  // for YaRN, if the file does not say

class Grok final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_rms_norm_eps(reader);
    reader.ignore("router_logit_softcapping");  // neither this nor the next is applied by llama.cpp
    reader.ignore("attention.temperature_length");
    config.rope = read_rope(reader, config, kBetaFast);
    require_full_causal_attention(reader, config);
    reader.only("use_parallel_residual", {0});
    read_experts(reader, config);
    require_wide_experts(config);
    set_routing(reader, config, Gating::kSoftmax, Normalization::kSum);
    read_no_shared_expert(reader);
    // The defaults are those of Grok 1, whose files lack these keys.
    embedding_scale_ = static_cast<float>(reader.number("embedding_scale", 1e-6, 1e6, 78.38367176906169));
    logits_scale_ = static_cast<float>(reader.number("logit_scale", 1e-6, 1e6, 0.5773502691896257));
    attention_.scale = static_cast<float>(reader.number("attention.output_scale", 1e-6, 1e6, 0.08838834764831845));
    attention_.softcap = static_cast<float>(reader.number("attn_logit_softcapping", 1e-6, 1e6, 30));
    logits_cap_ = static_cast<float>(reader.number("final_logit_softcapping", 0, 1e6, 0));
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    embedding_ = declare_embedding(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      w.attn = declare_joined_attention(weights, config, i);
      w.attn_post_norm = declare_norm(weights, i, "attn_output_norm", config.n_embd);
      w.ffn_norm = declare_norm(weights, i, "ffn_norm", config.n_embd);
      w.router = declare_router(weights, config, i);
      w.experts = declare_experts(weights, config, i);
      if (weights.has(i, "ffn_up.weight")) w.dense = declare_gated_feed_forward(weights, config, i);
      const bool old_name = weights.has(i, "layer_output_norm.weight");
      w.ffn_post_norm = declare_norm(weights, i, old_name ? "layer_output_norm" : "post_ffw_norm", config.n_embd);
    }
    output_norm_ = declare_norm(weights, kOutputLayer, "output_norm", config.n_embd);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = g.scale(embed(g, *embedding_), embedding_scale_);  // [n_tokens, n_embd]
    const ValueId table = g.rope_table(config.rope);               // [n_tokens, rope.n_dims / 2, 2]
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      ValueId h = named(g, i, "attn_norm", g.rms_norm(x, w.attn_norm, eps));  // [n_tokens, n_embd]
      Heads heads = project_heads(g, h, w.attn, config, i);
      rope_neox(g, heads, table);
      h = attention(g, heads, model.cache_desc(i, cache), attention_);  // [n_tokens, n_head * value_dim]
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);  // [n_outputs, n_head * value_dim]
        x = g.select_rows(x);  // [n_outputs, n_embd]
      }
      named(g, i, "attn_heads", h);
      h = named(g, i, "attn_out", linear(g, h, w.attn.out));  // [n_rows, n_embd]
      x = g.add(x, g.rms_norm(h, w.attn_post_norm, eps));     // [n_rows, n_embd]

      h = named(g, i, "ffn_norm", g.rms_norm(x, w.ffn_norm, eps));  // [n_rows, n_embd]
      const ValueId routed = gated_experts(g, h, w.experts, route(g, h, w.router, config), UnaryKind::kGeluTanh);
      if (w.dense.up.weight) {
        h = g.add(gated_feed_forward(g, h, w.dense, UnaryKind::kGeluTanh), routed);  // [n_rows, n_embd]
        h = g.scale(h, std::numbers::sqrt2_v<float> / 2);                            // [n_rows, n_embd]
      } else {
        h = routed;
      }
      h = g.rms_norm(h, w.ffn_post_norm, eps);                      // [n_rows, n_embd]
      x = named(g, i, "out", g.add(x, named(g, i, "ffn_out", h)));  // [n_rows, n_embd]
    }
    g.set_layer(kOutputLayer);
    const ValueId hidden = g.rms_norm(x, output_norm_, eps);  // [n_outputs, n_embd]
    const ValueId logits =
        soft_cap(g, g.scale(head_logits(g, hidden, head_), logits_scale_), logits_cap_);  // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits);
  }

 private:
  struct Layer {
    const Weight* attn_norm = nullptr;  // [n_embd]
    AttentionWeights attn;
    const Weight* attn_post_norm = nullptr;  // [n_embd]
    const Weight* ffn_norm = nullptr;        // [n_embd]
    RouterWeights router;
    ExpertWeights experts;
    GatedFeedForwardWeights dense;          // of Grok 2
    const Weight* ffn_post_norm = nullptr;  // [n_embd]
  };

  const Weight* embedding_ = nullptr;    // [n_vocab, n_embd]
  std::vector<Layer> layers_;            // [n_layer]
  const Weight* output_norm_ = nullptr;  // [n_embd]
  Linear head_;                          // [n_vocab, n_embd]
  AttentionParams attention_;
  float embedding_scale_ = 1;
  float logits_scale_ = 1;
  float logits_cap_ = 0;  // 0: none
};

}  // namespace

std::unique_ptr<Architecture> create_grok() { return std::make_unique<Grok>(); }

}  // namespace infer
