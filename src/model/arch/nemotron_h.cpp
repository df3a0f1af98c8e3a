// nemotron_h and nemotron_h_moe: every layer is one of three kinds: Mamba-2, attention without positions, or a
// feed-forward with squared ReLU, either dense or made of experts, which may work in a smaller space. The numbers of
// key and value heads and the feed-forward widths tell which kind.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class NemotronH final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader, /*fewest_heads=*/0);
    config.norm_eps = read_rms_norm_eps(reader);
    for (const char* unused :
         {"attention.layer_norm_epsilon", "rope.dimension_count", "rope.freq_base", "rope.scaling.finetuned"}) {
      reader.ignore(unused);
    }
    require_full_causal_attention(reader, config);
    reader.only("use_parallel_residual", {0});
    read_mixture(reader, config);
    config.ssm = read_ssm(reader);
    check_mamba2_sizes(config);
    for (LayerConfig& layer : config.layers) {
      if (layer.n_ff > 0) layer.n_kv_head = 0;
      else if (layer.n_kv_head == 0) layer.state_values = mamba2_state_values(config.ssm);
    }
    attention_scale_ = static_cast<float>(reader.number("attention.scale", 0, 1e6, 0));
    if (attention_scale_ == 0) attention_scale_ = attention_scale(config);
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    embedding_ = declare_embedding(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      if (config.layers[i].n_ff > 0 && weights.has(i, "ffn_gate_inp.weight")) declare_mixture(weights, config, i, w);
      else if (config.layers[i].n_ff > 0) w.ffn = declare_feed_forward(weights, config, i);
      else if (config.layers[i].n_kv_head > 0) w.attn = declare_joined_attention(weights, config, i);
      else w.mamba = declare_mamba2(weights, config, i);
    }
    output_norm_ = declare_norm(weights, kOutputLayer, "output_norm", config.n_embd);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    ValueId x = embed(g, *embedding_);  // [n_tokens, n_embd]
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      const LayerConfig& l = config.layers[i];
      ValueId h = named(g, i, "attn_norm", g.rms_norm(x, w.norm, config.norm_eps));  // [n_tokens, n_embd]
      if (l.state_values > 0) {
        h = mamba2(g, h, w.mamba, config, model.state_desc(i));  // [n_tokens, n_inner]
      } else if (l.n_kv_head > 0) {
        h = attention(g, project_heads(g, h, w.attn, config, i), model.cache_desc(i, cache),
                      {.scale = attention_scale_});  // [n_tokens, n_head * value_dim]
      }
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);  // [n_outputs, ..]
        x = g.select_rows(x);  // [n_outputs, n_embd]
      }
      if (l.n_ff > 0) {
        h = w.router.scores.weight ? mixture(g, h, w, config) : feed_forward(g, h, w.ffn, UnaryKind::kReluSquared);
        named(g, i, "ffn_out", h);
      } else {
        const Linear& out = l.state_values > 0 ? w.mamba.out : w.attn.out;
        h = named(g, i, "attn_out", linear(g, named(g, i, "attn_heads", h), out));  // [n_rows, n_embd]
      }
      x = named(g, i, "out", g.add(x, h));  // [n_rows, n_embd]
    }
    g.set_layer(kOutputLayer);
    const ValueId hidden = g.rms_norm(x, output_norm_, config.norm_eps);  // [n_outputs, n_embd]
    const ValueId logits = head_logits(g, hidden, head_);                 // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits);
  }

 private:
  struct Layer {
    const Weight* norm = nullptr;  // [n_embd]
    Mamba2Weights mamba;           // one of these three is used
    AttentionWeights attn;
    FeedForwardWeights ffn;         // dense, or the shared expert
    RouterWeights router;           // of layers with experts
    Linear latent_down, latent_up;  // [latent, n_embd], [n_embd, latent], or empty
    UngatedExpertWeights experts;   // of width `latent`
  };

  void read_mixture(ConfigReader& reader, ModelConfig& config) {
    read_experts(reader, config);
    if (config.n_expert == 0) return read_no_experts(reader);
    require_experts(config);
    read_routing(reader, config, Gating::kSigmoid);
    reader.only("expert_gating_func", {0, 2});
    read_shared_expert(reader, config);
    latent_ = reader.count("moe_latent_size", 0, kMaxWidth, 0);
  }

  void declare_mixture(WeightSet& weights, const ModelConfig& config, int i, Layer& w) const {
    const WeightRole shared = WeightRole::kSharedExpert;
    const int64_t d = config.n_embd, in = latent_ > 0 ? latent_ : d;
    w.router = declare_router(weights, config, i);
    w.experts = declare_ungated_experts(weights, config, i, in);
    w.ffn = {declare_linear(weights, i, shared, "ffn_up_shexp", config.n_ff_shared_expert, d),
             declare_linear(weights, i, shared, "ffn_down_shexp", d, config.n_ff_shared_expert)};
    if (latent_ == 0) return;
    w.latent_down = declare_linear(weights, i, WeightRole::kFeedForward, "ffn_latent_down", in, d);
    w.latent_up = declare_linear(weights, i, WeightRole::kFeedForward, "ffn_latent_up", d, in);
  }

  // x [n_rows, n_embd] -> the same shape.
  static ValueId mixture(Graph& g, ValueId x, const Layer& w, const ModelConfig& config) {
    const Graph::Route chosen = route(g, x, w.router, config);
    const ValueId in = w.latent_down.weight ? linear(g, x, w.latent_down) : x;            // [n_rows, latent]
    ValueId routed = ungated_experts(g, in, w.experts, chosen, UnaryKind::kReluSquared);  // [n_rows, latent]
    if (w.latent_up.weight) routed = linear(g, routed, w.latent_up);                      // [n_rows, n_embd]
    return g.add(routed, feed_forward(g, x, w.ffn, UnaryKind::kReluSquared));
  }

  const Weight* embedding_ = nullptr;    // [n_vocab, n_embd]
  std::vector<Layer> layers_;            // [n_layer]
  const Weight* output_norm_ = nullptr;  // [n_embd]
  Linear head_;                          // [n_vocab, n_embd]
  float attention_scale_ = 0;
  int latent_ = 0;  // width of the experts' inputs; 0: n_embd
};

}  // namespace

std::unique_ptr<Architecture> create_nemotron_h() { return std::make_unique<NemotronH>(); }

}  // namespace infer
