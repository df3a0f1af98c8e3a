// rwkv7: time mix with wkv whose state follows a generalized delta rule, values mixed with those of the first layer,
// and channel mix with a squared ReLU.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"
#include "src/model/blocks/rwkv.h"

namespace infer {
namespace {

class Rwkv7 final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_rwkv(reader, head_dim_);
    decay_rank_ = reader.count("attention.decay_lora_rank", 1, kMaxWidth);
    rate_rank_ = reader.count("attention.iclr_lora_rank", 1, kMaxWidth);
    value_rank_ = reader.count("attention.value_residual_mix_lora_rank", 1, kMaxWidth);
    gate_rank_ = reader.count("attention.gate_lora_rank", 0, kMaxWidth, 0);
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    const WeightRole role = WeightRole::kRecurrent;
    const int64_t d = config.n_embd;
    embedding_ = declare_embedding(weights, config);
    embedding_norm_ = declare_layer_norm(weights, kInputLayer, "token_embd_norm", d);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      const auto vector = [&](const char* name) { return weights.require(i, role, name, {d}); };
      const auto square = [&](const char* name) { return declare_linear(weights, i, role, name, d, d); };
      w.time_norm = declare_layer_norm(weights, i, "attn_norm", d);
      w.mix = weights.require_parts(i, role, "time_mix_lerp_fused.weight", gate_rank_ > 0 ? 6 : 5, {d});
      w.decay = declare_low_rank(weights, i, "time_mix_w", d, decay_rank_);
      w.rate = declare_low_rank(weights, i, "time_mix_a", d, rate_rank_);
      if (i > 0) w.value_mix = declare_low_rank(weights, i, "time_mix_v", d, value_rank_);
      for (const char* unused : {"time_mix_v0.weight", "time_mix_v1.weight", "time_mix_v2.weight"}) {
        if (i == 0) weights.ignore(i, unused);
      }
      if (gate_rank_ > 0) {
        w.gate_down = declare_linear(weights, i, role, "time_mix_g1", gate_rank_, d);
        w.gate_up = declare_linear(weights, i, role, "time_mix_g2", d, gate_rank_);
      }
      w.key_scale = vector("time_mix_k_k.weight");
      w.key_rate = vector("time_mix_k_a.weight");
      w.first = vector("time_mix_r_k.weight");
      w.key = square("time_mix_key");
      w.value = square("time_mix_value");
      w.receptance = square("time_mix_receptance");
      w.heads_norm = declare_layer_norm(weights, i, "time_mix_ln", d);
      w.out = square("time_mix_output");
      w.channel_norm = declare_layer_norm(weights, i, "attn_norm_2", d);
      w.channel_mix_k = vector("channel_mix_lerp_k.weight");
      w.ffn.up = declare_linear(weights, i, role, "channel_mix_key", config.layers[i].n_ff, d);
      w.ffn.down = declare_linear(weights, i, role, "channel_mix_value", d, config.layers[i].n_ff);
    }
    output_norm_ = declare_layer_norm(weights, kOutputLayer, "output_norm", d);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = layer_norm(g, embed(g, *embedding_), embedding_norm_, eps);  // [n_tokens, n_embd]
    ValueId first_values = kNoValue;                                         // [n_tokens, n_embd]
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      const CacheDesc state = model.state_desc(i);
      ValueId h = named(g, i, "attn_norm", layer_norm(g, x, w.time_norm, eps));     // [n_tokens, n_embd]
      h = named(g, i, "attn_out", time_mix(g, h, w, config, state, first_values));  // [n_tokens, n_embd]
      x = g.add(x, h);                                                              // [n_tokens, n_embd]

      h = named(g, i, "ffn_norm", layer_norm(g, x, w.channel_norm, eps));           // [n_tokens, n_embd]
      ValueId change = shift_difference(g, h, channel_shift_state(state, config));  // [n_tokens, n_embd]
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);            // [n_outputs, n_embd]
        change = g.select_rows(change);  // [n_outputs, n_embd]
        x = g.select_rows(x);            // [n_outputs, n_embd]
      }
      h = feed_forward(g, mix(g, h, change, g.weight(*w.channel_mix_k)), w.ffn, UnaryKind::kReluSquared);
      x = named(g, i, "out", g.add(x, named(g, i, "ffn_out", h)));  // [n_rows, n_embd]
    }
    g.set_layer(kOutputLayer);
    const ValueId hidden = layer_norm(g, x, output_norm_, eps);  // [n_outputs, n_embd]
    const ValueId logits = head_logits(g, hidden, head_);        // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits);
  }

 private:
  struct Layer {
    LayerNorm time_norm, heads_norm, channel_norm;  // [n_embd]
    std::vector<const Weight*> mix;                 // of r, w, k, v, a and g: [n_embd]
    LowRankWeights decay, rate, value_mix;          // value_mix: unused in the first layer
    Linear gate_down, gate_up;                      // [gate rank, n_embd], [n_embd, gate rank]; empty without a gate
    const Weight *key_scale = nullptr, *key_rate = nullptr, *first = nullptr;  // [n_embd]
    Linear key, value, receptance, out;                                        // [n_embd, n_embd]
    const Weight* channel_mix_k = nullptr;                                     // [n_embd]
    FeedForwardWeights ffn;
  };

  // x [n_tokens, n_embd] -> the same shape. The first layer stores the values that later ones mix in.
  ValueId time_mix(Graph& g, ValueId x, const Layer& w, const ModelConfig& config, const CacheDesc& state,
                   ValueId& first_values) const {
    const ValueId change = shift_difference(g, x, time_shift_state(state));  // [n_tokens, n_embd]
    const auto mixed = [&](int part) { return mix(g, x, change, g.weight(*w.mix[part])); };
    const auto heads = [&](ValueId rows) { return split_heads(g, rows, head_dim_); };
    const ValueId decay_low = g.unary(linear(g, mixed(1), w.decay.down), UnaryKind::kTanh);
    const ValueId decay = raise(g, decay_low, w.decay);
    ValueId k = linear(g, mixed(2), w.key), v = linear(g, mixed(3), w.value);
    if (first_values == kNoValue) {
      first_values = v;
    } else {
      v = mix(g, v, g.add(first_values, g.scale(v, -1)),
              g.unary(raise(g, linear(g, mixed(3), w.value_mix.down), w.value_mix), UnaryKind::kSigmoid));
    }
    const ValueId rate = g.unary(raise(g, linear(g, mixed(4), w.rate.down), w.rate), UnaryKind::kSigmoid);
    const ValueId removed =
        l2_norm(g, heads(g.mul(k, g.weight(*w.key_scale))), 1e-12f);  // [n_tokens, n_head, head_dim]
    const ValueId slow = g.mul(k, g.weight(*w.key_rate));
    k = g.add(k, g.add(g.mul(rate, slow), g.scale(slow, -1)));
    const Graph::Wkv wkv = g.wkv({.r = heads(linear(g, mixed(0), w.receptance)),
                                  .k = heads(k),
                                  .v = heads(v),
                                  .w = heads(decay),
                                  .a = g.scale(removed, -1),
                                  .b = g.mul(removed, heads(rate))},
                                 *w.first, wkv_state(state, config));
    ValueId y = g.add(norm_wkv_heads(g, wkv.out, head_dim_, w.heads_norm), wkv.bonus);  // [n_tokens, n_embd]
    if (w.gate_up.weight) {
      y = g.mul(y, linear(g, g.unary(linear(g, mixed(5), w.gate_down), UnaryKind::kSigmoid), w.gate_up));
    }
    return linear(g, y, w.out);
  }

  const Weight* embedding_ = nullptr;  // [n_vocab, n_embd]
  LayerNorm embedding_norm_;           // [n_embd]
  std::vector<Layer> layers_;          // [n_layer]
  LayerNorm output_norm_;              // [n_embd]
  Linear head_;                        // [n_vocab, n_embd]
  int head_dim_ = 0, decay_rank_ = 0, rate_rank_ = 0, value_rank_ = 0, gate_rank_ = 0;
};

}  // namespace

std::unique_ptr<Architecture> create_rwkv7() { return std::make_unique<Rwkv7>(); }

}  // namespace infer
