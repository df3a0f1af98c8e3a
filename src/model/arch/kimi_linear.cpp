// kimi-linear: Kimi delta attention in most layers, latent attention without positions in the others; leading dense
// layers, then routed experts plus shared ones.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class KimiLinear final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader, 0);
    config.norm_eps = read_rms_norm_eps(reader);
    config.rope = read_rope(reader, config);
    read_latent_attention(reader, config);
    read_kimi_delta(reader, config);
    require_full_causal_attention(reader, config);
    reader.only("use_parallel_residual", {0});
    read_experts(reader, config);
    require_experts(config);
    read_routing(reader, config, Gating::kSigmoid);
    read_shared_expert(reader, config);
    reader.only("expert_weights_norm", {1});
    config.routing.normalize = true;
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    embedding_ = declare_embedding(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      if (config.layers[i].n_kv_head > 0) {
        w.attn = declare_latent_attention(weights, config, i);
        w.out = w.attn.out;
      } else {
        w.delta = declare_kimi_delta(weights, config, i);
        w.out = w.delta.out;
      }
      w.ffn_norm = declare_norm(weights, i, "ffn_norm", config.n_embd);
      w.ffn = declare_layer_feed_forward(weights, config, i);
    }
    output_norm_ = declare_norm(weights, kOutputLayer, "output_norm", config.n_embd);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = embed(g, *embedding_);  // [n_tokens, n_embd]
    const AttentionParams params = {.scale = latent_attention_scale(config)};
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      ValueId h = named(g, i, "attn_norm", g.rms_norm(x, w.attn_norm, eps));  // [n_tokens, n_embd]
      if (w.attn.out.weight) {
        h = latent_attention(g, h, w.attn, config, {}, model.cache_desc(i, cache), params);
      } else {
        h = kimi_delta(g, h, w.delta, config, DecayForm::kSoftplus, 0, model.state_desc(i));
      }
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);  // [n_outputs, n_head * value_dim or n_inner]
        x = g.select_rows(x);  // [n_outputs, n_embd]
      }
      named(g, i, "attn_heads", h);
      h = named(g, i, "attn_out", linear(g, h, w.out));  // [n_rows, n_embd]
      x = g.add(x, h);                                   // [n_rows, n_embd]

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
    LatentAttentionWeights attn;        // empty in recurrent layers
    KimiDeltaWeights delta;             // empty in layers with attention
    Linear out;                         // of attention or delta: [n_embd, n_head * value_dim or n_inner]
    const Weight* ffn_norm = nullptr;   // [n_embd]
    LayerFeedForwardWeights ffn;
  };

  const Weight* embedding_ = nullptr;    // [n_vocab, n_embd]
  std::vector<Layer> layers_;            // [n_layer]
  const Weight* output_norm_ = nullptr;  // [n_embd]
  Linear head_;                          // [n_vocab, n_embd]
};

}  // namespace

std::unique_ptr<Architecture> create_kimi_linear() { return std::make_unique<KimiLinear>(); }

}  // namespace infer
