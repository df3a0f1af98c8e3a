// llama4: three layers with chunked attention and interleaved rope, then one with full attention, no positions, and
// queries scaled by position. Some layers have a shared and a routed expert, whose input is multiplied by a sigmoid
// weight; the others are dense.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

constexpr int kChunk = 8192;           // positions
constexpr int kLlama4Period = 4;       // one layer in this many has full attention and no positions
constexpr int kMaverickExperts = 128;  // Llama 4 Maverick does not normalize heads

class Llama4 final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_rms_norm_eps(reader);
    config.rope = read_rope(reader, config);
    // llama.cpp uses chunks of this length, whatever the file says.
    reader.count("attention.sliding_window", 1, kMaxContext, kChunk);
    read_windows(reader, config, kChunk, kLlama4Period);
    for (LayerConfig& l : config.layers) l.window = l.window > 0 ? kChunk : 0;
    reader.only("use_parallel_residual", {0});
    read_experts(reader, config);
    require_experts(config);
    set_routing(reader, config, Gating::kSigmoidOfSelected, Normalization::kNone);
    read_no_shared_expert(reader);  // its width is that of a routed expert
    config.n_ff_shared_expert = config.n_ff_expert;
    normalizes_heads_ = config.n_expert != kMaverickExperts;
    attention_scale_ = static_cast<float>(reader.number("attention.scale", 0, 1e6, 0));
    if (attention_scale_ == 0) attention_scale_ = attention_scale(config);
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    embedding_ = declare_embedding(weights, config);
    rope_factors_ = declare_rope_factors(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      w.attn = declare_joined_attention(weights, config, i);
      w.ffn_norm = declare_norm(weights, i, "ffn_norm", config.n_embd);
      w.ffn = declare_layer_feed_forward(weights, config, i);
    }
    output_norm_ = declare_norm(weights, kOutputLayer, "output_norm", config.n_embd);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = embed(g, *embedding_);                               // [n_tokens, n_embd]
    const ValueId table = g.rope_table(config.rope, rope_factors_);  // [n_tokens, rope.n_dims / 2, 2]
    const ValueId window_table = g.rope_table(config.rope_window, rope_factors_);
    const ValueId factor = g.position_factor({.scale = 0.1f, .interval = kChunk, .offset = 1});  // [n_tokens, 1]
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      const int window = config.layers[i].window;
      const AttentionParams params = {.scale = attention_scale_, .window = window, .chunked = true};
      ValueId h = named(g, i, "attn_norm", g.rms_norm(x, w.attn_norm, eps));  // [n_tokens, n_embd]
      Heads heads = project_heads(g, h, w.attn, config, i);
      if (i % kLlama4Period < kLlama4Period - 1) {
        rope_interleaved(g, heads, window > 0 ? window_table : table);
        if (normalizes_heads_) rms_norm_heads(g, heads, nullptr, nullptr, eps);
      } else {
        heads.q = scale_by_position(g, heads.q, factor);
      }
      h = attention(g, heads, model.cache_desc(i, cache), params);  // [n_tokens, n_head * value_dim]
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);  // [n_outputs, n_head * value_dim]
        x = g.select_rows(x);  // [n_outputs, n_embd]
      }
      named(g, i, "attn_heads", h);
      h = named(g, i, "attn_out", linear(g, h, w.attn.out));  // [n_rows, n_embd]
      x = g.add(x, h);                                        // [n_rows, n_embd]

      h = named(g, i, "ffn_norm", g.rms_norm(x, w.ffn_norm, eps));  // [n_rows, n_embd]
      h = feed_forward(g, h, w.ffn, config);                        // [n_rows, n_embd]
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
    AttentionWeights attn;
    const Weight* ffn_norm = nullptr;  // [n_embd]
    LayerFeedForwardWeights ffn;
  };

  // x [n_rows, n_embd] -> [n_rows, n_embd].
  static ValueId feed_forward(Graph& g, ValueId x, const LayerFeedForwardWeights& w, const ModelConfig& config) {
    if (w.dense.up.weight) return gated_feed_forward(g, x, w.dense, UnaryKind::kSilu);
    const ValueId routed = gated_experts_of_weighted(g, x, w.experts, route(g, x, w.router, config), UnaryKind::kSilu);
    return g.add(routed, gated_feed_forward(g, x, w.shared, UnaryKind::kSilu));
  }

  const Weight* embedding_ = nullptr;     // [n_vocab, n_embd]
  const Weight* rope_factors_ = nullptr;  // [rope.n_dims / 2], null if the file has none
  std::vector<Layer> layers_;             // [n_layer]
  const Weight* output_norm_ = nullptr;   // [n_embd]
  Linear head_;                           // [n_vocab, n_embd]
  bool normalizes_heads_ = true;
  float attention_scale_ = 1;
};

}  // namespace

std::unique_ptr<Architecture> create_llama4() { return std::make_unique<Llama4>(); }

}  // namespace infer
