// rwkv6: time mix with wkv, whose decays and mixed inputs depend on the data, and channel mix with a squared ReLU.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"
#include "src/model/blocks/rwkv.h"

namespace infer {
namespace {

class Rwkv6 final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_rwkv(reader, head_dim_);
    mix_rank_ = reader.count("time_mix_extra_dim", 1, kMaxWidth);
    decay_rank_ = reader.count("time_decay_extra_dim", 1, kMaxWidth);
    halved_every_ = reader.count("rescale_every_n_layers", 0, kMaxLayers, 0);
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
      w.mix_base = vector("time_mix_lerp_x.weight");
      w.mix_down = declare_linear(weights, i, role, "time_mix_w1", 5 * int64_t{mix_rank_}, d);
      w.mix_up = weights.require_parts(i, role, "time_mix_w2.weight", 5, {d, mix_rank_});
      if (weights.has(i, "time_mix_lerp_fused.weight")) {
        w.mix = weights.require_parts(i, role, "time_mix_lerp_fused.weight", 5, {d});
      } else {
        w.mix = {vector("time_mix_lerp_w.weight"), vector("time_mix_lerp_k.weight"), vector("time_mix_lerp_v.weight"),
                 vector("time_mix_lerp_r.weight"), vector("time_mix_lerp_g.weight")};
      }
      w.first = vector("time_mix_first.weight");
      w.decay = {vector("time_mix_decay.weight"), declare_linear(weights, i, role, "time_mix_decay_w1", decay_rank_, d),
                 declare_linear(weights, i, role, "time_mix_decay_w2", d, decay_rank_)};
      w.key = square("time_mix_key");
      w.value = square("time_mix_value");
      w.receptance = square("time_mix_receptance");
      w.gate = square("time_mix_gate");
      w.heads_norm = declare_layer_norm(weights, i, "time_mix_ln", d);
      w.out = square("time_mix_output");
      w.channel_norm = declare_layer_norm(weights, i, "attn_norm_2", d);
      w.channel_mix_k = vector("channel_mix_lerp_k.weight");
      w.channel_mix_r = vector("channel_mix_lerp_r.weight");
      w.up = declare_linear(weights, i, role, "channel_mix_key", config.layers[i].n_ff, d);
      w.down = declare_linear(weights, i, role, "channel_mix_value", d, config.layers[i].n_ff);
      w.channel_receptance = square("channel_mix_receptance");
    }
    output_norm_ = declare_layer_norm(weights, kOutputLayer, "output_norm", d);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = layer_norm(g, embed(g, *embedding_), embedding_norm_, eps);  // [n_tokens, n_embd]
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      const CacheDesc state = model.state_desc(i);
      ValueId h = named(g, i, "attn_norm", layer_norm(g, x, w.time_norm, eps));  // [n_tokens, n_embd]
      h = named(g, i, "attn_out", time_mix(g, h, w, config, state));             // [n_tokens, n_embd]
      x = g.add(x, h);                                                           // [n_tokens, n_embd]

      h = named(g, i, "ffn_norm", layer_norm(g, x, w.channel_norm, eps));           // [n_tokens, n_embd]
      ValueId change = shift_difference(g, h, channel_shift_state(state, config));  // [n_tokens, n_embd]
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);            // [n_outputs, n_embd]
        change = g.select_rows(change);  // [n_outputs, n_embd]
        x = g.select_rows(x);            // [n_outputs, n_embd]
      }
      h = channel_mix(g, h, change, w);                             // [n_rows, n_embd]
      x = named(g, i, "out", g.add(x, named(g, i, "ffn_out", h)));  // [n_rows, n_embd]
      // The file's weights are divided accordingly; this keeps values small.
      if (halved_every_ > 0 && (i + 1) % halved_every_ == 0) x = g.scale(x, 0.5f);
    }
    g.set_layer(kOutputLayer);
    const ValueId hidden = layer_norm(g, x, output_norm_, eps);  // [n_outputs, n_embd]
    const ValueId logits = head_logits(g, hidden, head_);        // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits);
  }

 private:
  struct Layer {
    LayerNorm time_norm, heads_norm, channel_norm;  // [n_embd]
    const Weight* mix_base = nullptr;               // [n_embd]
    Linear mix_down;                                // [5 * mix rank, n_embd]
    std::vector<const Weight*> mix_up;              // of w, k, v, r and g: [n_embd, mix rank]
    std::vector<const Weight*> mix;                 // of the same: [n_embd]
    const Weight* first = nullptr;                  // [n_embd]
    LowRankWeights decay;
    Linear key, value, receptance, gate, out;                         // [n_embd, n_embd]
    const Weight *channel_mix_k = nullptr, *channel_mix_r = nullptr;  // [n_embd]
    Linear up, down;                                                  // [n_ff, n_embd], [n_embd, n_ff]
    Linear channel_receptance;                                        // [n_embd, n_embd]
  };

  // x [n_tokens, n_embd] -> the same shape.
  ValueId time_mix(Graph& g, ValueId x, const Layer& w, const ModelConfig& config, const CacheDesc& state) const {
    const ValueId change = shift_difference(g, x, time_shift_state(state));  // [n_tokens, n_embd]
    const ValueId low = g.unary(linear(g, mix(g, x, change, g.weight(*w.mix_base)), w.mix_down), UnaryKind::kTanh);
    const auto mixed = [&](int part) {
      const ValueId learned = g.matmul(g.view_columns(low, part * int64_t{mix_rank_}, mix_rank_), *w.mix_up[part]);
      return mix(g, x, change, g.add(learned, g.weight(*w.mix[part])));  // [n_tokens, n_embd]
    };
    const ValueId decay_low = g.unary(linear(g, mixed(0), w.decay.down), UnaryKind::kTanh);
    const ValueId decay = raise(g, decay_low, w.decay);
    const auto heads = [&](ValueId rows) { return split_heads(g, rows, head_dim_); };
    const Graph::Wkv wkv = g.wkv({.r = heads(linear(g, mixed(3), w.receptance)),
                                  .k = heads(linear(g, mixed(1), w.key)),
                                  .v = heads(linear(g, mixed(2), w.value)),
                                  .w = heads(decay)},
                                 *w.first, wkv_state(state, config));
    const ValueId y = norm_wkv_heads(g, g.add(wkv.out, wkv.bonus), head_dim_, w.heads_norm);  // [n_tokens, n_embd]
    return linear(g, g.gated_activation(linear(g, mixed(4), w.gate), y, UnaryKind::kSilu), w.out);
  }

  // x and the difference from the previous token [n_rows, n_embd] -> the same shape.
  static ValueId channel_mix(Graph& g, ValueId x, ValueId change, const Layer& w) {
    const ValueId inner = g.unary(linear(g, mix(g, x, change, g.weight(*w.channel_mix_k)), w.up),
                                  UnaryKind::kReluSquared);  // [n_rows, n_ff]
    const ValueId gate = linear(g, mix(g, x, change, g.weight(*w.channel_mix_r)), w.channel_receptance);
    return g.gated_activation(gate, linear(g, inner, w.down), UnaryKind::kSigmoid);
  }

  const Weight* embedding_ = nullptr;  // [n_vocab, n_embd]
  LayerNorm embedding_norm_;           // [n_embd]
  std::vector<Layer> layers_;          // [n_layer]
  LayerNorm output_norm_;              // [n_embd]
  Linear head_;                        // [n_vocab, n_embd]
  int head_dim_ = 0, mix_rank_ = 0, decay_rank_ = 0, halved_every_ = 0;
};

}  // namespace

std::unique_ptr<Architecture> create_rwkv6() { return std::make_unique<Rwkv6>(); }

}  // namespace infer
