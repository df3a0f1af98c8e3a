// kimi-k3: Kimi delta attention in most layers, gated latent attention without positions in the others; residuals that
// attend over earlier layers; gates capped by a tanh; leading dense layers, then routed experts in a smaller space,
// plus shared ones.
#include <algorithm>

#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class KimiK3 final : public Architecture {
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
    expert_width_ = reader.count("expert_latent_length", 0, kMaxWidth, 0);
    bank_period_ = reader.count("attn_res.block_size", 0, kMaxLayers);
    lowest_decay_ = static_cast<float>(reader.number("kda.gate_lower_bound", -1e6, -1e-6, 0));
    gate_cap_ = static_cast<float>(reader.number("activation.situ_beta", 1e-6, 1e6));
    up_cap_ = std::max(0.0f, static_cast<float>(reader.number("activation.situ_linear_beta", -1e6, 1e6)));
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    const int64_t d = config.n_embd;
    const auto declare_score = [&](int layer, std::string_view name) {
      return bank_period_ > 0 ? weights.require(layer, WeightRole::kResidual, name, {1, d}) : nullptr;
    };
    embedding_ = declare_embedding(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_score = declare_score(i, "attn_res_score.weight");
      w.attn_norm = declare_norm(weights, i, "attn_norm", d);
      if (config.layers[i].n_kv_head > 0) {
        w.attn = declare_latent_attention(weights, config, i);
        w.gate = declare_attention_gate(weights, config, i, int64_t{config.layers[i].n_head} * config.latent.value_dim);
        w.out = w.attn.out;
      } else {
        w.delta = declare_kimi_delta(weights, config, i);
        w.out = w.delta.out;
      }
      w.ffn_score = declare_score(i, "ffn_res_score.weight");
      w.ffn_norm = declare_norm(weights, i, "ffn_norm", d);
      w.ffn = declare_narrow_experts(weights, config, i, expert_width_);
    }
    output_score_ = declare_score(kOutputLayer, "output_res_score.weight");
    output_norm_ = declare_norm(weights, kOutputLayer, "output_norm", d);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = embed(g, *embedding_);  // [n_tokens, n_embd]
    ResidualBank bank;
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      ValueId h = bank_period_ > 0 ? attend_to_bank(g, x, bank, *w.attn_score, eps) : x;  // [n_tokens, n_embd]
      const bool banks = bank_period_ > 0 && i % bank_period_ == 0;
      if (banks) bank_residual(g, bank, x, eps);
      h = named(g, i, "attn_norm", g.rms_norm(h, w.attn_norm, eps));  // [n_tokens, n_embd]
      h = attend(g, h, w, model, i, cache);                           // [n_tokens, n_head * value_dim or n_inner]
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);  // [n_outputs, n_head * value_dim or n_inner]
        x = g.select_rows(x);  // [n_outputs, n_embd]
        select_bank_rows(g, bank);
      }
      named(g, i, "attn_heads", h);
      h = named(g, i, "attn_out", linear(g, h, w.out));  // [n_rows, n_embd]
      x = banks ? h : g.add(x, h);                       // [n_rows, n_embd]; a banked residual starts anew

      h = bank_period_ > 0 ? attend_to_bank(g, x, bank, *w.ffn_score, eps) : x;  // [n_rows, n_embd]
      h = named(g, i, "ffn_norm", g.rms_norm(h, w.ffn_norm, eps));               // [n_rows, n_embd]
      h = narrow_experts(g, h, w.ffn, config, {gate_cap_, up_cap_});             // [n_rows, n_embd]
      x = named(g, i, "out", g.add(x, named(g, i, "ffn_out", h)));               // [n_rows, n_embd]
    }
    g.set_layer(kOutputLayer);
    if (bank_period_ > 0) x = attend_to_bank(g, x, bank, *output_score_, eps);
    const ValueId hidden = g.rms_norm(x, output_norm_, eps);  // [n_outputs, n_embd]
    const ValueId logits = head_logits(g, hidden, head_);     // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits);
  }

 private:
  struct Layer {
    const Weight* attn_score = nullptr;  // [1, n_embd], null without a bank
    const Weight* attn_norm = nullptr;   // [n_embd]
    LatentAttentionWeights attn;         // empty in recurrent layers
    Linear gate;                         // [n_head * value_dim, n_embd], empty if the file has none
    KimiDeltaWeights delta;              // empty in layers with attention
    Linear out;                          // of attention or delta: [n_embd, n_head * value_dim or n_inner]
    const Weight* ffn_score = nullptr;   // [1, n_embd], null without a bank
    const Weight* ffn_norm = nullptr;    // [n_embd]
    NarrowExpertsWeights ffn;
  };

  // x [n_tokens, n_embd] -> [n_tokens, n_head * value_dim or n_inner].
  ValueId attend(Graph& g, ValueId x, const Layer& w, const Model& model, int layer, CacheTypes cache) const {
    const ModelConfig& config = model.config();
    if (!w.attn.out.weight) {
      const DecayForm form = lowest_decay_ < 0 ? DecayForm::kBoundedNegated : DecayForm::kSoftplus;
      return kimi_delta(g, x, w.delta, config, form, lowest_decay_, model.state_desc(layer));
    }
    const AttentionParams params = {.scale = latent_attention_scale(config)};
    const ValueId h = latent_attention(g, x, w.attn, config, {}, model.cache_desc(layer, cache), params);
    return gate_attention(g, h, x, w.gate, UnaryKind::kSigmoid);
  }

  const Weight* embedding_ = nullptr;     // [n_vocab, n_embd]
  std::vector<Layer> layers_;             // [n_layer]
  const Weight* output_score_ = nullptr;  // [1, n_embd], null without a bank
  const Weight* output_norm_ = nullptr;   // [n_embd]
  Linear head_;                           // [n_vocab, n_embd]
  int expert_width_ = 0;                  // of the experts' inputs and outputs; 0: n_embd
  int bank_period_ = 0;                   // the first of every this many layers banks its residual; 0: none does
  float lowest_decay_ = 0;                // natural logarithm; 0: decays are not bounded
  float gate_cap_ = 1, up_cap_ = 0;       // of the activation
};

}  // namespace

std::unique_ptr<Architecture> create_kimi_k3() { return std::make_unique<KimiK3>(); }

}  // namespace infer
