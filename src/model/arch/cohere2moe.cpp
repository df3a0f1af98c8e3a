// cohere2moe: attention and feed-forward run in parallel on the same norm. Leading dense layers, sliding-window layers
// and prediction layers have interleaved rope, the others no positions. The mean of the routed experts and a shared
// one. Scaled logits.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class Cohere2Moe final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    // The name of the epsilon key tells which norm is used.
    has_rms_norm_ = reader.number("attention.layer_norm_rms_epsilon", 0, 1, 0) != 0;
    config.norm_eps = has_rms_norm_ ? read_rms_norm_eps(reader) : read_layer_norm_eps(reader);
    if (has_rms_norm_) reader.ignore("attention.layer_norm_epsilon");
    config.rope = read_rope(reader, config);
    read_windows_after_first(reader, config, 0, 4);
    reader.only("use_parallel_residual", {1});
    read_experts(reader, config);
    require_experts(config);
    read_routing(reader, config, Gating::kSigmoid);
    read_shared_expert(reader, config);
    n_leading_dense_ = reader.count("leading_dense_block_count", 0, config.n_layer);
    logits_scale_ = static_cast<float>(reader.number("logit_scale", 1e-6, 1e6));
    choose_layers(reader, config);
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    input_ = declare_input(weights, config);
    rope_factors_ = declare_rope_factors(weights, config);
    ignore_prediction_layers(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      w.attn = declare_joined_attention(weights, config, i);
      w.ffn = declare_layer_feed_forward(weights, config, i);
    }
    output_norm_ = declare_output_norm(weights, config);
    head_ = declare_head(weights, config, input_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = embed(g, input_, [&](ValueId h, const Weight* w) { return norm(g, h, w, eps); });  // [n_tokens, n_embd]
    const ValueId table = g.rope_table(config.rope, rope_factors_);  // [n_tokens, rope.n_dims / 2, 2]
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      const int window = config.layers[i].window;
      const AttentionParams params = {.scale = attention_scale(config), .window = window};
      ValueId h = named(g, i, "attn_norm", norm(g, x, w.attn_norm, eps));  // [n_tokens, n_embd]
      ValueId ffn_in = h;                                                  // [n_tokens, n_embd]
      Heads heads = project_heads(g, h, w.attn, config, i);
      if (window > 0 || i < n_leading_dense_ || predicts(config)) rope_interleaved(g, heads, table);
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

      h = layer_feed_forward(g, ffn_in, w.ffn, config, UnaryKind::kSilu);  // [n_rows, n_embd]
      if (w.ffn.shared.up.weight) h = g.scale(h, 0.5f);                    // [n_rows, n_embd]
      x = named(g, i, "out", g.add(x, named(g, i, "ffn_out", h)));         // [n_rows, n_embd]
    }
    g.set_layer(kOutputLayer);
    const ValueId hidden = norm(g, x, output_norm_, eps);                          // [n_outputs, n_embd]
    const ValueId logits = g.scale(head_logits(g, hidden, head_), logits_scale_);  // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits);
  }

 private:
  struct Layer {
    const Weight* attn_norm = nullptr;  // [n_embd]
    AttentionWeights attn;
    LayerFeedForwardWeights ffn;
  };

  ValueId norm(Graph& g, ValueId x, const Weight* weight, float eps) const {
    return has_rms_norm_ ? g.rms_norm(x, weight, eps) : g.layer_norm(x, weight, nullptr, eps);
  }

  ModelInput input_;
  const Weight* rope_factors_ = nullptr;  // [rope.n_dims / 2], null if the file has none
  std::vector<Layer> layers_;             // [n_layer]
  const Weight* output_norm_ = nullptr;   // [n_embd]
  Linear head_;                           // [n_vocab, n_embd]
  bool has_rms_norm_ = false;
  int n_leading_dense_ = 0;
  float logits_scale_ = 1;
};

}  // namespace

std::unique_ptr<Architecture> create_cohere2moe() { return std::make_unique<Cohere2Moe>(); }

}  // namespace infer
