// gpt-oss: attention sinks, a sliding window in every other layer, biases everywhere, and routed experts with a clamped
// gated activation, weighted by a softmax over the selected ones.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class GptOss final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_rms_norm_eps(reader);
    config.rope = read_rope(reader, config);
    read_windows(reader, config, 0, 2);
    reader.only("use_parallel_residual", {0});
    read_experts(reader, config);
    require_experts(config);
    set_routing(reader, config, Gating::kSoftmaxOfSelected, Normalization::kNone);
    read_no_shared_expert(reader);
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    embedding_ = declare_embedding(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      w.attn = declare_joined_attention(weights, config, i);
      w.sinks = weights.require(i, WeightRole::kAttention, "attn_sinks.weight", {config.layers[i].n_head});
      w.ffn_norm = declare_norm(weights, i, "post_attention_norm", config.n_embd);
      w.router = declare_router(weights, config, i);
      w.experts = declare_biased_experts(weights, config, i);
    }
    output_norm_ = declare_norm(weights, kOutputLayer, "output_norm", config.n_embd);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = embed(g, *embedding_);                // [n_tokens, n_embd]
    const ValueId table = g.rope_table(config.rope);  // [n_tokens, rope.n_dims / 2, 2]
    const ValueId window_table = g.rope_table(config.rope_window);
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      const int window = config.layers[i].window;
      const AttentionParams params = {.scale = attention_scale(config), .window = window};
      ValueId h = named(g, i, "attn_norm", g.rms_norm(x, w.attn_norm, eps));  // [n_tokens, n_embd]
      Heads heads = project_heads(g, h, w.attn, config, i);
      rope_neox(g, heads, window > 0 ? window_table : table);
      h = attention_with_sinks(g, heads, model.cache_desc(i, cache), params,
                               *w.sinks);  // [n_tokens, n_head * value_dim]
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);  // [n_outputs, n_head * value_dim]
        x = g.select_rows(x);  // [n_outputs, n_embd]
      }
      named(g, i, "attn_heads", h);
      h = named(g, i, "attn_out", linear(g, h, w.attn.out));  // [n_rows, n_embd]
      x = g.add(x, h);                                        // [n_rows, n_embd]

      h = named(g, i, "ffn_norm", g.rms_norm(x, w.ffn_norm, eps));                          // [n_rows, n_embd]
      h = gated_experts(g, h, w.experts, route(g, h, w.router, config), clamped_swiglu());  // [n_rows, n_embd]
      x = named(g, i, "out", g.add(x, named(g, i, "ffn_out", h)));                          // [n_rows, n_embd]
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
    const Weight* sinks = nullptr;     // [n_head]
    const Weight* ffn_norm = nullptr;  // [n_embd]
    RouterWeights router;
    ExpertWeights experts;
  };

  const Weight* embedding_ = nullptr;    // [n_vocab, n_embd]
  std::vector<Layer> layers_;            // [n_layer]
  const Weight* output_norm_ = nullptr;  // [n_embd]
  Linear head_;                          // [n_vocab, n_embd]
};

}  // namespace

std::unique_ptr<Architecture> create_gpt_oss() { return std::make_unique<GptOss>(); }

}  // namespace infer
