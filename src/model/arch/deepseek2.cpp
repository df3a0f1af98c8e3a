// deepseek2 and mistral4: latent attention with interleaved rope; leading dense layers, then routed experts plus shared
// ones. With YaRN, attention scores are scaled as well as rotated values.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class DeepSeek2 final : public Architecture {
 public:
  explicit DeepSeek2(RotatedMagnitude magnitude) : magnitude_(magnitude) {}

  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_rms_norm_eps(reader);
    config.rope = read_rope(reader, config);
    const float yarn_scale = read_yarn_magnitude(reader, config.rope, magnitude_);
    read_latent_attention(reader, config);
    attention_scale_ = latent_attention_scale(config) * yarn_scale;
    query_factor_ = read_query_factor(reader, config);
    require_full_causal_attention(reader, config);
    reader.only("use_parallel_residual", {0});
    read_experts(reader, config);
    if (config.n_expert > 0) {
      require_experts(config);
      read_routing(reader, config, Gating::kSoftmax);
      read_shared_expert(reader, config);
    }
    choose_layers(reader, config);
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    input_ = declare_input(weights, config);
    ignore_prediction_layers(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      w.attn = declare_latent_attention(weights, config, i);
      w.ffn_norm = declare_norm(weights, i, "ffn_norm", config.n_embd);
      w.ffn = declare_layer_feed_forward(weights, config, i);
    }
    output_norm_ = declare_output_norm(weights, config);
    head_ = declare_head(weights, config, input_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = embed(g, input_, eps);  // [n_tokens, n_embd]
    LatentPositions positions = {.table = g.rope_table(config.rope), .interleaved = true};
    if (query_factor_.scale != 0) positions.query_factor = g.position_factor(query_factor_);
    const AttentionParams params = {.scale = attention_scale_};
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      ValueId h = named(g, i, "attn_norm", g.rms_norm(x, w.attn_norm, eps));  // [n_tokens, n_embd]
      // [n_tokens, n_head * value_dim]
      h = latent_attention(g, h, w.attn, config, positions, model.cache_desc(i, cache), params);
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);  // [n_outputs, n_head * value_dim]
        x = g.select_rows(x);  // [n_outputs, n_embd]
      }
      named(g, i, "attn_heads", h);
      h = named(g, i, "attn_out", linear(g, h, w.attn.out));  // [n_rows, n_embd]
      x = g.add(x, h);                                        // [n_rows, n_embd]

      h = named(g, i, "ffn_norm", g.rms_norm(x, w.ffn_norm, eps));    // [n_rows, n_embd]
      h = layer_feed_forward(g, h, w.ffn, config, UnaryKind::kSilu);  // [n_rows, n_embd]
      x = named(g, i, "out", g.add(x, named(g, i, "ffn_out", h)));    // [n_rows, n_embd]
    }
    g.set_layer(kOutputLayer);
    const ValueId hidden = g.rms_norm(x, output_norm_, eps);  // [n_outputs, n_embd]
    const ValueId logits = head_logits(g, hidden, head_);     // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits);
  }

 private:
  struct Layer {
    const Weight* attn_norm = nullptr;  // [n_embd]
    LatentAttentionWeights attn;
    const Weight* ffn_norm = nullptr;  // [n_embd]
    LayerFeedForwardWeights ffn;
  };

  const RotatedMagnitude magnitude_;
  float attention_scale_ = 1;
  PositionFactorParams query_factor_;  // scale 0: none
  ModelInput input_;
  std::vector<Layer> layers_;            // [n_layer]
  const Weight* output_norm_ = nullptr;  // [n_embd]
  Linear head_;                          // [n_vocab, n_embd]
};

}  // namespace

std::unique_ptr<Architecture> create_deepseek2() { return std::make_unique<DeepSeek2>(RotatedMagnitude::kOne); }
std::unique_ptr<Architecture> create_mistral4() { return std::make_unique<DeepSeek2>(RotatedMagnitude::kRatio); }

}  // namespace infer
