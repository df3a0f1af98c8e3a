// step35: Step 3.5. Normalized heads, whose number differs between layers; a sigmoid gate per head on attention; NeoX
// rope, in layers without a window on half the dimensions and with frequency factors; leading dense layers, then routed
// experts plus a shared one, whose activation limits differ between layers.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class Step35 final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_rms_norm_eps(reader);
    config.rope = read_rope(reader, config);
    read_windows(reader, config, 0, 0);
    read_window_rope(reader, config);
    config.rope_window.n_dims = reader.count("rope.dimension_count_swa", 2, config.key_dim, config.rope.n_dims);
    config.rope.n_dims /= 2;
    reader.only("use_parallel_residual", {0});
    read_experts(reader, config);
    require_experts(config);
    read_routing(reader, config, Gating::kSigmoid);
    read_shared_expert(reader, config);
    routed_limits_ = reader.numbers("swiglu_clamp_exp", config.n_layer, 0, 1e6);
    shared_limits_ = reader.numbers("swiglu_clamp_shexp", config.n_layer, 0, 1e6);
    choose_layers(reader, config);
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    input_ = declare_input(weights, config);
    // Layers without a window use the first half.
    rope_factors_ = weights.optional(kInputLayer, WeightRole::kRope, "rope_freqs.weight", {config.rope.n_dims});
    ignore_prediction_layers(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      w.attn = declare_joined_attention(weights, config, i);
      w.q_norm = weights.optional(i, WeightRole::kNorm, "attn_q_norm.weight", {config.key_dim});
      w.k_norm = weights.optional(i, WeightRole::kNorm, "attn_k_norm.weight", {config.key_dim});
      w.gate = declare_attention_gate(weights, config, i, config.layers[i].n_head);
      w.ffn_norm = declare_norm(weights, i, "ffn_norm", config.n_embd);
      w.ffn = declare_layer_feed_forward(weights, config, i);
    }
    output_norm_ = declare_output_norm(weights, config);
    head_ = declare_head(weights, config, input_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = embed(g, input_, eps);                               // [n_tokens, n_embd]
    const ValueId table = g.rope_table(config.rope, rope_factors_);  // [n_tokens, rope.n_dims / 2, 2]
    const ValueId window_table = g.rope_table(config.rope_window);
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      const int window = config.layers[i].window;
      const AttentionParams params = {.scale = attention_scale(config), .window = window};
      const ValueId attn_in = named(g, i, "attn_norm", g.rms_norm(x, w.attn_norm, eps));  // [n_tokens, n_embd]
      Heads heads = project_heads(g, attn_in, w.attn, config, i);
      if (w.q_norm) heads.q = g.rms_norm(heads.q, w.q_norm, eps);
      if (w.k_norm) heads.k = g.rms_norm(heads.k, w.k_norm, eps);
      rope_neox(g, heads, window > 0 ? window_table : table);
      ValueId h = attention(g, heads, model.cache_desc(i, cache), params);  // [n_tokens, n_head * value_dim]
      h = gate_attention(g, h, attn_in, w.gate, UnaryKind::kSigmoid);       // [n_tokens, n_head * value_dim]
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);  // [n_outputs, n_head * value_dim]
        x = g.select_rows(x);  // [n_outputs, n_embd]
      }
      named(g, i, "attn_heads", h);
      h = named(g, i, "attn_out", linear(g, h, w.attn.out));  // [n_rows, n_embd]
      x = g.add(x, h);                                        // [n_rows, n_embd]

      h = named(g, i, "ffn_norm", g.rms_norm(x, w.ffn_norm, eps));  // [n_rows, n_embd]
      const int in_file = config.first_layer + i;
      h = layer_feed_forward(g, h, w.ffn, config, limited_swiglu(routed_limits_[in_file]),
                             limited_swiglu(shared_limits_[in_file]));
      x = named(g, i, "out", g.add(x, named(g, i, "ffn_out", h)));  // [n_rows, n_embd]
    }
    g.set_layer(kOutputLayer);
    const ValueId hidden = g.rms_norm(x, output_norm_, eps);  // [n_outputs, n_embd]
    const ValueId logits = head_logits(g, hidden, head_);     // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits, config, x);
  }

 private:
  struct Layer {
    const Weight* attn_norm = nullptr;  // [n_embd]
    AttentionWeights attn;
    const Weight* q_norm = nullptr;    // [key_dim], null if the file has none
    const Weight* k_norm = nullptr;    // [key_dim], null if the file has none
    Linear gate;                       // [n_head, n_embd], empty if the file has none
    const Weight* ffn_norm = nullptr;  // [n_embd]
    LayerFeedForwardWeights ffn;
  };

  ModelInput input_;
  const Weight* rope_factors_ = nullptr;              // [rope.n_dims / 2], null if the file has none
  std::vector<Layer> layers_;                         // [n_layer]
  const Weight* output_norm_ = nullptr;               // [n_embd]
  Linear head_;                                       // [n_vocab, n_embd]
  std::vector<float> routed_limits_, shared_limits_;  // [block_count]
};

}  // namespace

std::unique_ptr<Architecture> create_step35() { return std::make_unique<Step35>(); }

}  // namespace infer
