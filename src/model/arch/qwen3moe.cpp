// Normalized heads, NeoX rope, and routed experts, optionally with a shared one and after dense layers:
//   qwen3moe, and the text part of qwen3vlmoe: softmax weights of experts are normalized to a sum of 1;
//   dots1, bailingmoe2 and hy_v3: the file says how experts are routed;
//   exaone-moe: the same, and three sliding-window layers with rope, then one with full attention and no positions.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

// The common part; each architecture reads its own hyper-parameters.
class NormalizedHeadsMoe : public Architecture {
 public:
  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    input_ = declare_input(weights, config);
    rope_factors_ = declare_rope_factors(weights, config);
    ignore_prediction_layers(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      w.attn = declare_joined_attention(weights, config, i);
      w.q_norm = declare_norm(weights, i, "attn_q_norm", config.key_dim);
      w.k_norm = declare_norm(weights, i, "attn_k_norm", config.key_dim);
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
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      const int window = config.layers[i].window;
      const AttentionParams params = {.scale = attention_scale(config), .window = window};
      ValueId h = named(g, i, "attn_norm", g.rms_norm(x, w.attn_norm, eps));  // [n_tokens, n_embd]
      Heads heads = project_heads(g, h, w.attn, config, i);
      rms_norm_heads(g, heads, w.q_norm, w.k_norm, eps);
      if (window > 0 || !only_windows_rotate_) rope_neox(g, heads, table);
      h = attention(g, heads, model.cache_desc(i, cache), params);  // [n_tokens, n_head * value_dim]
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

 protected:
  explicit NormalizedHeadsMoe(bool only_windows_rotate = false) : only_windows_rotate_(only_windows_rotate) {}

  static ModelConfig read_sizes_and_experts(ConfigReader& reader) {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_rms_norm_eps(reader);
    config.rope = read_rope(reader, config);
    reader.only("use_parallel_residual", {0});
    read_experts(reader, config);
    require_experts(config);
    return config;
  }

 private:
  struct Layer {
    const Weight* attn_norm = nullptr;  // [n_embd]
    AttentionWeights attn;
    const Weight* q_norm = nullptr;    // [key_dim]
    const Weight* k_norm = nullptr;    // [key_dim]
    const Weight* ffn_norm = nullptr;  // [n_embd]
    LayerFeedForwardWeights ffn;
  };

  ModelInput input_;
  const Weight* rope_factors_ = nullptr;  // [rope.n_dims / 2], null if the file has none
  std::vector<Layer> layers_;             // [n_layer]
  const Weight* output_norm_ = nullptr;   // [n_embd]
  Linear head_;                           // [n_vocab, n_embd]
  const bool only_windows_rotate_;        // layers without a window have no positions
};

class Qwen3Moe final : public NormalizedHeadsMoe {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes_and_experts(reader);
    require_full_causal_attention(reader, config);
    read_position_sections(reader, config);
    reader.ignore("n_deepstack_layers");  // for images
    set_routing(reader, config, Gating::kSoftmax, Normalization::kSum);
    read_no_shared_expert(reader);
    return config;
  }
};

class Dots1 final : public NormalizedHeadsMoe {
 public:
  using Read = void(ConfigReader&, ModelConfig&);
  explicit Dots1(Read& shared, Read& prediction = drop_prediction_layers) : shared_(shared), prediction_(prediction) {}

  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes_and_experts(reader);
    require_full_causal_attention(reader, config);
    read_routing(reader, config, Gating::kSigmoid);
    shared_(reader, config);
    if (config.n_ff_shared_expert == 0) config.n_ff_shared_expert = config.n_ff_expert;
    prediction_(reader, config);
    return config;
  }

 private:
  Read &shared_, &prediction_;  // read the shared experts and the prediction layers
};

class ExaoneMoe final : public NormalizedHeadsMoe {
 public:
  ExaoneMoe() : NormalizedHeadsMoe(/*only_windows_rotate=*/true) {}

  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes_and_experts(reader);
    read_windows(reader, config, 0, 4);
    read_routing(reader, config, Gating::kSigmoid);
    read_shared_expert(reader, config);
    drop_prediction_layers(reader, config);
    return config;
  }
};

}  // namespace

std::unique_ptr<Architecture> create_qwen3moe() { return std::make_unique<Qwen3Moe>(); }
std::unique_ptr<Architecture> create_dots1() { return std::make_unique<Dots1>(read_shared_expert); }
std::unique_ptr<Architecture> create_bailingmoe2() { return std::make_unique<Dots1>(read_each_shared_expert); }
std::unique_ptr<Architecture> create_hy_v3() { return std::make_unique<Dots1>(read_shared_expert, choose_layers); }
std::unique_ptr<Architecture> create_exaone_moe() { return std::make_unique<ExaoneMoe>(); }

}  // namespace infer
