// qwen3next, qwen35 and qwen35moe: gated delta-net layers mixed with gated attention, each followed by a dense
// feed-forward, or by routed experts plus a gated shared one.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class Qwen3Next final : public Architecture {
 public:
  explicit Qwen3Next(const DeltaRuleParams& heads) : heads_(heads) {}

  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_rms_norm_eps(reader);
    config.rope = read_rope(reader, config);
    require_full_causal_attention(reader, config);
    read_position_sections(reader, config);
    reader.only("use_parallel_residual", {0});
    read_mixture(reader, config);
    config.ssm = read_ssm(reader);
    check_delta_net_sizes(config);
    read_delta_net_layers(reader, config);
    choose_layers(reader, config);
    attention_scale_ = static_cast<float>(reader.number("attention.scale", 0, 1e6, 0));
    if (attention_scale_ == 0) attention_scale_ = attention_scale(config);
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    input_ = declare_input(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      if (config.layers[i].n_kv_head > 0) {
        w.attn = declare_gated_attention(weights, config, i);
        w.out = w.attn.out;
      } else {
        w.delta = weights.has(i, "ssm_ba.weight") ? declare_delta_net_joined(weights, config, i)
                                                  : declare_delta_net(weights, config, i);
        w.out = w.delta.out;
      }
      w.ffn_norm = declare_norm(weights, i, "post_attention_norm", config.n_embd);
      if (config.n_expert > 0) w.mixture = declare_mixture(weights, config, i);
      else w.ffn = declare_gated_feed_forward(weights, config, i);
    }
    ignore_prediction_layers(weights, config);
    output_norm_ = declare_output_norm(weights, config);
    head_ = declare_head(weights, config, input_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = embed(g, input_, eps);                // [n_tokens, n_embd]
    const ValueId table = g.rope_table(config.rope);  // [n_tokens, rope.n_dims / 2, 2]
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      ValueId h = named(g, i, "attn_norm", g.rms_norm(x, w.attn_norm, eps));  // [n_tokens, n_embd]
      if (w.attn.out.weight) {
        h = gated_attention(g, h, w.attn, config, i, table, model.cache_desc(i, cache), attention_scale_);
      } else {
        h = delta_net(g, h, w.delta, config, heads_, model.state_desc(i));  // [n_tokens, n_inner]
      }
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);  // [n_outputs, n_head * value_dim or n_inner]
        x = g.select_rows(x);  // [n_outputs, n_embd]
      }
      named(g, i, "attn_heads", h);
      h = named(g, i, "attn_out", linear(g, h, w.out));  // [n_rows, n_embd]
      x = g.add(x, h);                                   // [n_rows, n_embd]

      h = named(g, i, "ffn_norm", g.rms_norm(x, w.ffn_norm, eps));  // [n_rows, n_embd]
      h = config.n_expert > 0 ? mixture(g, h, w.mixture, config)
                              : gated_feed_forward(g, h, w.ffn, UnaryKind::kSilu);  // [n_rows, n_embd]
      x = named(g, i, "out", g.add(x, named(g, i, "ffn_out", h)));                  // [n_rows, n_embd]
    }
    g.set_layer(kOutputLayer);
    const ValueId hidden = g.rms_norm(x, output_norm_, eps);  // [n_outputs, n_embd]
    const ValueId logits = head_logits(g, hidden, head_);     // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits);
  }

 private:
  struct Layer {
    const Weight* attn_norm = nullptr;  // [n_embd]
    GatedAttentionWeights attn;
    DeltaNetWeights delta;             // of layers without attention
    Linear out;                        // of attention or delta: [n_embd, n_head * value_dim or n_inner]
    const Weight* ffn_norm = nullptr;  // [n_embd]
    GatedFeedForwardWeights ffn;       // of dense models
    MixtureWeights mixture;            // of mixtures of experts
  };

  const DeltaRuleParams heads_;  // which heads of queries, keys and values belong together
  ModelInput input_;
  std::vector<Layer> layers_;            // [n_layer]
  const Weight* output_norm_ = nullptr;  // [n_embd]
  Linear head_;                          // [n_vocab, n_embd]
  float attention_scale_ = 0;
};

}  // namespace

std::unique_ptr<Architecture> create_qwen3next() { return std::make_unique<Qwen3Next>(DeltaRuleParams{}); }

std::unique_ptr<Architecture> create_qwen35() { return std::make_unique<Qwen3Next>(DeltaRuleParams{true}); }

}  // namespace infer
