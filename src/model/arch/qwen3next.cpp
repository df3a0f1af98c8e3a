// qwen3next, qwen35 and qwen35moe: gated delta-net layers mixed with gated attention, each followed by a dense
// feed-forward, or by routed experts and a gated shared one.
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
    read_recurrent_layers(reader, config);
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
      if (config.n_expert == 0) {
        w.ffn = declare_gated_feed_forward(weights, config, i);
        continue;
      }
      w.router = declare_router(weights, config, i);
      w.experts = declare_experts(weights, config, i);
      w.ffn = declare_shared_expert(weights, config, i);
      w.shared_gate = declare_shared_expert_gate(weights, config, i);
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
        h = gated_attention(g, h, w.attn, config, table, model.cache_desc(i, cache), attention_scale_);
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
      h = w.router.scores.weight ? mixture(g, h, w, config) : gated_feed_forward(g, h, w.ffn, UnaryKind::kSilu);
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
    GatedAttentionWeights attn;
    DeltaNetWeights delta;                // of layers without attention
    Linear out;                           // of either: [n_embd, n_head * value_dim or n_inner]
    const Weight* ffn_norm = nullptr;     // [n_embd]
    GatedFeedForwardWeights ffn;          // dense, or the shared expert
    RouterWeights router;                 // of mixtures of experts
    ExpertWeights experts;                // of mixtures of experts
    const Weight* shared_gate = nullptr;  // [1, n_embd], of mixtures of experts
  };

  static void read_mixture(ConfigReader& reader, ModelConfig& config) {
    read_experts(reader, config);
    set_routing(reader, config, Gating::kSoftmax, Normalization::kSum);
    reader.only("expert_shared_count", {0, 1});
    config.n_ff_shared_expert = reader.count("expert_shared_feed_forward_length", 0, kMaxWidth, 0);
    if (config.n_expert == 0) return;
    require_experts(config);
    if (config.n_ff_shared_expert == 0) config.n_ff_shared_expert = config.layers[0].n_ff;
  }

  // The file lists the recurrent layers, or says that one layer of so many has attention.
  static void read_recurrent_layers(ConfigReader& reader, ModelConfig& config) {
    const int predicting = reader.count("nextn_predict_layers", 0, config.n_layer - 1, 0);
    const auto listed = reader.flags("attention.recurrent_layers", config.n_layer);
    const int interval = reader.count("full_attention_interval", 1, kMaxLayers, 4);
    for (int i = 0; i < config.n_layer - predicting; ++i) {
      if (listed ? (*listed)[i] : (i + 1) % interval != 0) config.layers[i].n_kv_head = 0;
    }
    mark_recurrent_layers(config, delta_net_state_values(config.ssm));
  }

  // x [n_rows, n_embd] -> the same shape.
  static ValueId mixture(Graph& g, ValueId x, const Layer& w, const ModelConfig& config) {
    const Graph::Route chosen = route(g, x, w.router, config);                        // [n_rows, n_used]
    const ValueId routed = gated_experts(g, x, w.experts, chosen, UnaryKind::kSilu);  // [n_rows, n_embd]
    const ValueId shared = gated_feed_forward(g, x, w.ffn, UnaryKind::kSilu);         // [n_rows, n_embd]
    const ValueId gate = g.unary(g.matmul(x, *w.shared_gate), UnaryKind::kSigmoid);   // [n_rows, 1]
    return g.add(routed, g.mul(shared, gate));
  }

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
