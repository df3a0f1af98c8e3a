// granite_swa: granite with attention sinks, sliding-window layers, layers without positions, and routed experts plus a
// shared one.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class GraniteSwa final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_rms_norm_eps(reader);
    config.rope = read_rope(reader, config);
    read_windows(reader, config, 0, 0);
    reader.only("use_parallel_residual", {0});
    has_rope_ =
        reader.flags("attention.rope_pattern", config.n_layer).value_or(std::vector<bool>(config.n_layer, true));
    embedding_scale_ = static_cast<float>(reader.number("embedding_scale", 1e-6, 1e6, 1));
    residual_scale_ = static_cast<float>(reader.number("residual_scale", 1e-6, 1e6, 1));
    logits_divisor_ = static_cast<float>(reader.number("logit_scale", 1e-6, 1e6));
    attention_scale_ = static_cast<float>(reader.number("attention.scale", 0, 1e6, 0));
    if (attention_scale_ == 0) attention_scale_ = attention_scale(config);
    read_experts(reader, config);
    if (config.n_ff_expert == 0) config.n_ff_expert = config.layers[0].n_ff;
    set_routing(reader, config, Gating::kSoftmax, Normalization::kSum);
    config.n_ff_shared_expert = reader.count("expert_shared_feed_forward_length", 0, kMaxWidth, 0);
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    embedding_ = declare_embedding(weights, config);
    rope_factors_ = declare_long_rope_factors(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      w.attn = declare_joined_attention(weights, config, i);
      w.sinks = weights.require(i, WeightRole::kAttention, "attn_sinks.weight", {config.layers[i].n_head});
      w.ffn_norm = declare_norm(weights, i, "ffn_norm", config.n_embd);
      if (config.n_expert == 0) {
        w.ffn = declare_gated_feed_forward(weights, config, i);
      } else {
        w.router = declare_router(weights, config, i);
        w.experts = declare_experts(weights, config, i);
        if (config.n_ff_shared_expert > 0) w.shared = declare_joined_shared_expert(weights, config, i);
      }
    }
    output_norm_ = declare_norm(weights, kOutputLayer, "output_norm", config.n_embd);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = g.scale(embed(g, *embedding_), embedding_scale_);    // [n_tokens, n_embd]
    const ValueId table = g.rope_table(config.rope, rope_factors_);  // [n_tokens, rope.n_dims / 2, 2]
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      const int window = config.layers[i].window;
      const AttentionParams params = {.scale = attention_scale_, .window = window};
      ValueId h = named(g, i, "attn_norm", g.rms_norm(x, w.attn_norm, eps));  // [n_tokens, n_embd]
      Heads heads = project_heads(g, h, w.attn, config, i);
      if (has_rope_[i]) rope_interleaved(g, heads, table);
      h = attention_with_sinks(g, heads, model.cache_desc(i, cache), params,
                               *w.sinks);  // [n_tokens, n_head * value_dim]
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);  // [n_outputs, n_head * value_dim]
        x = g.select_rows(x);  // [n_outputs, n_embd]
      }
      named(g, i, "attn_heads", h);
      h = named(g, i, "attn_out", linear(g, h, w.attn.out));  // [n_rows, n_embd]
      h = g.scale(h, residual_scale_);                        // [n_rows, n_embd]
      x = g.add(x, h);                                        // [n_rows, n_embd]

      h = named(g, i, "ffn_norm", g.rms_norm(x, w.ffn_norm, eps));                  // [n_rows, n_embd]
      h = config.n_expert == 0 ? gated_feed_forward(g, h, w.ffn, UnaryKind::kSilu)  // [n_rows, n_embd]
                               : mixture(g, h, w, config);
      h = g.scale(h, residual_scale_);                              // [n_rows, n_embd]
      x = named(g, i, "out", g.add(x, named(g, i, "ffn_out", h)));  // [n_rows, n_embd]
    }
    g.set_layer(kOutputLayer);
    const ValueId hidden = g.rms_norm(x, output_norm_, eps);                             // [n_outputs, n_embd]
    const ValueId logits = g.scale(head_logits(g, hidden, head_), 1 / logits_divisor_);  // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits);
  }

 private:
  struct Layer {
    const Weight* attn_norm = nullptr;  // [n_embd]
    AttentionWeights attn;
    const Weight* sinks = nullptr;     // [n_head]
    const Weight* ffn_norm = nullptr;  // [n_embd]
    GatedFeedForwardWeights ffn;       // of dense models
    RouterWeights router;              // of mixtures of experts
    ExpertWeights experts;             // of mixtures of experts
    JoinedFeedForwardWeights shared;   // empty if there is no shared expert
  };

  // The routed experts and the shared one. x [n_rows, n_embd] -> the same.
  static ValueId mixture(Graph& g, ValueId x, const Layer& w, const ModelConfig& config) {
    const Graph::Route used = route(g, x, w.router, config);                        // [n_rows, n_used]
    const ValueId routed = gated_experts(g, x, w.experts, used, UnaryKind::kSilu);  // [n_rows, n_embd]
    if (!w.shared.down.weight) return routed;
    return g.add(routed, gated_feed_forward(g, x, w.shared, UnaryKind::kSilu));  // [n_rows, n_embd]
  }

  const Weight* embedding_ = nullptr;     // [n_vocab, n_embd]
  const Weight* rope_factors_ = nullptr;  // [rope.n_dims / 2], null if the file has none
  std::vector<Layer> layers_;             // [n_layer]
  const Weight* output_norm_ = nullptr;   // [n_embd]
  Linear head_;                           // [n_vocab, n_embd]
  std::vector<bool> has_rope_;            // [n_layer]
  float embedding_scale_ = 1;
  float residual_scale_ = 1;  // on the outputs of attention and feed-forward
  float logits_divisor_ = 1;
  float attention_scale_ = 1;
};

}  // namespace

std::unique_ptr<Architecture> create_granite_swa() { return std::make_unique<GraniteSwa>(); }

}  // namespace infer
