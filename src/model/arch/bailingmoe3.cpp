// bailingmoe3: Kimi delta attention with bounded decays in most layers, latent attention with interleaved rope and a
// sigmoid gate per head in the others; leading dense layers, then routed experts plus shared ones, whose activation
// limits differ between layers.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class BailingMoe3 final : public Architecture {
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
    if (config.n_ff_shared_expert == 0) config.n_ff_shared_expert = config.n_ff_expert;
    reader.only("kda.safe_gate", {1});
    lowest_decay_ = static_cast<float>(reader.number("kda.gate_lower_bound", -1e6, -1e-6));
    routed_limits_ = reader.numbers("swiglu_clamp_exp", config.n_layer, 0, 1e6);
    shared_limits_ = reader.numbers("swiglu_clamp_shexp", config.n_layer, 0, 1e6);
    choose_layers(reader, config);
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    input_ = declare_input(weights, config);
    ignore_prediction_layers(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      if (config.layers[i].n_kv_head > 0) {
        w.attn = declare_latent_attention(weights, config, i);
        w.gate = declare_attention_gate(weights, config, i, config.layers[i].n_head);
        w.out = w.attn.out;
      } else {
        w.delta = declare_kimi_delta(weights, config, i);
        w.out = w.delta.out;
      }
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
    const LatentPositions positions = {.table = g.rope_table(config.rope), .interleaved = true};
    const AttentionParams params = {.scale = latent_attention_scale(config)};
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      const ValueId attn_in = named(g, i, "attn_norm", g.rms_norm(x, w.attn_norm, eps));  // [n_tokens, n_embd]
      ValueId h;
      if (w.attn.out.weight) {
        h = latent_attention(g, attn_in, w.attn, config, positions, model.cache_desc(i, cache), params);
        h = gate_attention(g, h, attn_in, w.gate, UnaryKind::kSigmoid);  // [n_tokens, n_head * value_dim]
      } else {
        h = kimi_delta(g, attn_in, w.delta, config, DecayForm::kBounded, lowest_decay_, model.state_desc(i));
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
      const int in_file = config.first_layer + i;
      h = layer_feed_forward(g, h, w.ffn, config, limited_swiglu(routed_limits_[in_file]),
                             limited_swiglu(shared_limits_[in_file]));
      x = named(g, i, "out", g.add(x, named(g, i, "ffn_out", h)));  // [n_rows, n_embd]
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
    Linear gate;                        // [n_head, n_embd]
    KimiDeltaWeights delta;             // empty in layers with attention
    Linear out;                         // of attention or delta: [n_embd, n_head * value_dim or n_inner]
    const Weight* ffn_norm = nullptr;   // [n_embd]
    LayerFeedForwardWeights ffn;
  };

  ModelInput input_;
  std::vector<Layer> layers_;                         // [n_layer]
  const Weight* output_norm_ = nullptr;               // [n_embd]
  Linear head_;                                       // [n_vocab, n_embd]
  float lowest_decay_ = 0;                            // natural logarithm
  std::vector<float> routed_limits_, shared_limits_;  // [block_count]
};

}  // namespace

std::unique_ptr<Architecture> create_bailingmoe3() { return std::make_unique<BailingMoe3>(); }

}  // namespace infer
