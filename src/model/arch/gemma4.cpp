// gemma4: layers with and without a window have heads of different sizes; the last layers read the keys and values of
// earlier ones. Heads are normalized, values without weights; there are norms after attention and feed-forward too.
// Optionally an input and a scale per layer, and layers with routed experts in parallel with the dense feed-forward,
// each with its own norms.
#include <cmath>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class Gemma4 final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_rms_norm_eps(reader);
    config.rope = read_rope(reader, config);
    reader.count("attention.sliding_window", 1, kMaxContext);
    read_windows(reader, config, 0, 6);
    read_head_sizes(reader, config);
    read_shared_caches(reader, config, 0);
    reader.only("use_parallel_residual", {0});
    reader.only("attention.scale", {1});
    read_experts(reader, config);
    if (config.n_expert > 0) require_experts(config);
    set_routing(reader, config, Gating::kSoftmax, Normalization::kSum);
    read_no_shared_expert(reader);
    input_width_ = reader.count("embedding_length_per_layer_input", 0, kMaxWidth / config.n_layer, 0);
    logits_cap_ = static_cast<float>(reader.number("final_logit_softcapping", 0, 1e6, 30));
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    embedding_ = declare_embedding(weights, config);
    rope_factors_ = weights.require(kInputLayer, WeightRole::kRope, "rope_freqs.weight", {config.key_dim / 2});
    if (input_width_ > 0) inputs_ = declare_per_layer_inputs(weights, config, input_width_);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      w.attn = declare_normalized_attention(weights, config, i);
      w.attn_post_norm = declare_norm(weights, i, "post_attention_norm", config.n_embd);
      w.ffn_norm = declare_norm(weights, i, "ffn_norm", config.n_embd);
      w.ffn = declare_gated_feed_forward(weights, config, i);
      w.ffn_post_norm = declare_norm(weights, i, "post_ffw_norm", config.n_embd);
      if (has_experts(weights, i)) w.mixture = declare_parallel_experts(weights, config, i);
      if (input_width_ > 0) w.per_layer = declare_per_layer(weights, config, i, input_width_);
      w.scale = declare_factor(weights, i, WeightRole::kResidual, "layer_output_scale.weight");
    }
    output_norm_ = declare_norm(weights, kOutputLayer, "output_norm", config.n_embd);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = g.scale(embed(g, *embedding_), std::sqrt(static_cast<float>(config.n_embd)));  // [n_tokens, n_embd]
    // [n_tokens, n_layer * input_width]
    const ValueId inputs = input_width_ > 0 ? per_layer_inputs(g, x, inputs_, config) : kNoValue;
    const WindowTables tables = {g.rope_table(config.rope, rope_factors_), g.rope_table(config.rope_window)};
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      ValueId input = kNoValue;  // [n_tokens, input_width]
      if (input_width_ > 0) input = g.view_columns(inputs, int64_t{i} * input_width_, input_width_);
      ValueId h = named(g, i, "attn_norm", g.rms_norm(x, w.attn_norm, eps));  // [n_tokens, n_embd]
      // [n_tokens, n_head * head_dim]
      h = normalized_attention(g, h, w.attn, config, i, tables, model.cache_desc(i, cache));
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);  // [n_outputs, n_head * head_dim]
        x = g.select_rows(x);  // [n_outputs, n_embd]
        if (input_width_ > 0) input = g.select_rows(input);
      }
      named(g, i, "attn_heads", h);
      h = named(g, i, "attn_out", linear(g, h, w.attn.heads.out));  // [n_rows, n_embd]
      x = g.add(x, g.rms_norm(h, w.attn_post_norm, eps));           // [n_rows, n_embd]

      h = named(g, i, "ffn_norm", g.rms_norm(x, w.ffn_norm, eps));  // [n_rows, n_embd]
      h = gated_feed_forward(g, h, w.ffn, UnaryKind::kGeluTanh);    // [n_rows, n_embd]
      if (w.mixture.router.scores.weight) h = add_parallel_experts(g, h, x, w.mixture, config);
      x = g.add(x, g.rms_norm(named(g, i, "ffn_out", h), w.ffn_post_norm, eps));  // [n_rows, n_embd]
      if (input_width_ > 0) x = g.add(x, per_layer_embedding(g, x, input, w.per_layer, eps));
      x = named(g, i, "out", g.scale(x, w.scale));
    }
    g.set_layer(kOutputLayer);
    const ValueId hidden = g.rms_norm(x, output_norm_, eps);                         // [n_outputs, n_embd]
    const ValueId logits = soft_cap(g, head_logits(g, hidden, head_), logits_cap_);  // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits);
  }

 private:
  struct Layer {
    const Weight* attn_norm = nullptr;  // [n_embd]
    NormalizedAttentionWeights attn;
    const Weight* attn_post_norm = nullptr;  // [n_embd]
    const Weight* ffn_norm = nullptr;        // [n_embd]
    GatedFeedForwardWeights ffn;
    const Weight* ffn_post_norm = nullptr;  // [n_embd]
    ParallelExpertsWeights mixture;         // empty in layers without experts
    PerLayerWeights per_layer;              // empty in models without inputs per layer
    float scale = 1;                        // of the layer's result
  };

  // Keys and values have the same size, which is different in layers with a window.
  static void read_head_sizes(ConfigReader& reader, ModelConfig& config) {
    if (!reader.flags("attention.sliding_window_pattern", config.n_layer)) {
      throw Error(ErrorCode::kInvalidFile,
                  expected_found("model", "key gemma4.attention.sliding_window_pattern", "a flag per layer", "none"));
    }
    const int windowed = reader.count("attention.key_length_swa", 1, kMaxHeadDim);
    reader.only("attention.value_length", {static_cast<double>(config.key_dim)});
    reader.only("attention.value_length_swa", {static_cast<double>(windowed)});
    config.value_dim = config.key_dim;
    for (LayerConfig& l : config.layers) l.head_dim = l.window > 0 ? windowed : config.key_dim;
    config.rope_window = without_scaling(config.rope);
    config.rope_window.freq_base = static_cast<float>(reader.number("rope.freq_base_swa", 1.001, 1e15, 10000));
    config.rope_window.n_dims = reader.count("rope.dimension_count_swa", 2, windowed, config.rope.n_dims);
  }

  const Weight* embedding_ = nullptr;     // [n_vocab, n_embd]
  const Weight* rope_factors_ = nullptr;  // [key_dim / 2], of layers without a window
  PerLayerInputWeights inputs_;           // empty where input_width_ is 0
  std::vector<Layer> layers_;             // [n_layer]
  const Weight* output_norm_ = nullptr;   // [n_embd]
  Linear head_;                           // [n_vocab, n_embd]
  int input_width_ = 0;                   // of a layer's input; 0: there is none
  float logits_cap_ = 0;                  // 0: none
};

}  // namespace

std::unique_ptr<Architecture> create_gemma4() { return std::make_unique<Gemma4>(); }

}  // namespace infer
