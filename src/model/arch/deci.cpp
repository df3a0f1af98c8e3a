// deci: like llama, but layers may have no attention, a single matrix in its place, or no feed-forward.
#include "ggml-like/error.h"

#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class Deci final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader, /*fewest_heads=*/0);
    config.norm_eps = read_rms_norm_eps(reader);
    config.rope = read_rope(reader, config);
    require_full_causal_attention(reader, config);
    reader.only("use_parallel_residual", {0});
    read_no_experts(reader);
    for (const LayerConfig& layer : config.layers) {
      if (layer.n_head > 0 && layer.n_ff == 0) {
        throw Error(ErrorCode::kUnsupported,
                    "[model] key deci.feed_forward_length = 0 is not supported in layers with attention");
      }
    }
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    embedding_ = declare_embedding(weights, config);
    rope_factors_ = declare_rope_factors(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      const LayerConfig& l = config.layers[i];
      if (l.n_head > 0) w.attn_norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      if (l.n_kv_head > 0) {
        w.attn = declare_joined_attention(weights, config, i);
      } else if (l.n_head > 0) {
        w.attn.out = declare_linear(weights, i, WeightRole::kAttention, "attn_output", config.n_embd, config.n_embd);
      }
      if (l.n_ff == 0) continue;
      w.ffn_norm = declare_norm(weights, i, "ffn_norm", config.n_embd);
      w.ffn = declare_gated_feed_forward(weights, config, i);
    }
    output_norm_ = declare_norm(weights, kOutputLayer, "output_norm", config.n_embd);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = embed(g, *embedding_);                               // [n_tokens, n_embd]
    const ValueId table = g.rope_table(config.rope, rope_factors_);  // [n_tokens, rope.n_dims / 2, 2]
    const AttentionParams params = {.scale = attention_scale(config)};
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      ValueId h = kNoValue;
      if (w.attn_norm) h = named(g, i, "attn_norm", g.rms_norm(x, w.attn_norm, eps));  // [n_tokens, n_embd]
      if (config.layers[i].n_kv_head > 0) {
        Heads heads = project_heads(g, h, w.attn, config, i);
        rope_interleaved(g, heads, table);
        h = attention(g, heads, model.cache_desc(i, cache), params);  // [n_tokens, n_head * value_dim]
      }
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        if (h != kNoValue) h = g.select_rows(h);  // [n_outputs, n_head * value_dim]
        x = g.select_rows(x);                     // [n_outputs, n_embd]
      }
      if (h != kNoValue) {
        named(g, i, "attn_heads", h);
        h = named(g, i, "attn_out", linear(g, h, w.attn.out));  // [n_rows, n_embd]
        x = g.add(x, h);                                        // [n_rows, n_embd]
      }
      if (!w.ffn_norm) continue;

      h = named(g, i, "ffn_norm", g.rms_norm(x, w.ffn_norm, eps));  // [n_rows, n_embd]
      h = gated_feed_forward(g, h, w.ffn, UnaryKind::kSilu);        // [n_rows, n_embd]
      x = named(g, i, "out", g.add(x, named(g, i, "ffn_out", h)));  // [n_rows, n_embd]
    }
    g.set_layer(kOutputLayer);
    const ValueId hidden = g.rms_norm(x, output_norm_, eps);  // [n_outputs, n_embd]
    const ValueId logits = head_logits(g, hidden, head_);     // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits);
  }

 private:
  struct Layer {
    const Weight* attn_norm = nullptr;  // [n_embd], null without attention
    AttentionWeights attn;              // only `out`, [n_embd, n_embd], if a matrix takes its place
    const Weight* ffn_norm = nullptr;   // [n_embd], null without feed-forward
    GatedFeedForwardWeights ffn;
  };

  const Weight* embedding_ = nullptr;     // [n_vocab, n_embd]
  const Weight* rope_factors_ = nullptr;  // [rope.n_dims / 2], null if the file has none
  std::vector<Layer> layers_;             // [n_layer]
  const Weight* output_norm_ = nullptr;   // [n_embd]
  Linear head_;                           // [n_vocab, n_embd]
};

}  // namespace

std::unique_ptr<Architecture> create_deci() { return std::make_unique<Deci>(); }

}  // namespace infer
