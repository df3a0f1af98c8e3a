// mpt: ALiBi or learned positions; layer norms, optionally on queries and keys too; queries, keys and values clamped to
// limits; a tanh GELU without a gate.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class Mpt final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_layer_norm_eps(reader);
    require_full_causal_attention(reader, config);
    reader.only("use_parallel_residual", {0});
    read_no_experts(reader);
    reader.ignore("rope.dimension_count");
    max_bias_ = static_cast<float>(reader.number("attention.max_alibi_bias", 0, 1e3, 0));
    qkv_limit_ = static_cast<float>(reader.number("attention.clamp_kqv", 0, 1e6, 0));
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    embedding_ = declare_embedding(weights, config);
    positions_ = declare_positions(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_norm = declare_layer_norm(weights, i, "attn_norm", config.n_embd);
      w.attn = declare_joined_attention(weights, config, i);
      if (weights.has(i, "attn_q_norm.weight")) {
        const LayerConfig& l = config.layers[i];
        w.q_norm = declare_layer_norm(weights, i, "attn_q_norm", int64_t{l.n_head} * config.key_dim);
        w.k_norm = declare_layer_norm(weights, i, "attn_k_norm", int64_t{l.n_kv_head} * config.key_dim);
      }
      w.ffn_norm = declare_layer_norm(weights, i, "ffn_norm", config.n_embd);
      w.ffn = declare_feed_forward(weights, config, i);
    }
    output_norm_ = declare_layer_norm(weights, kOutputLayer, "output_norm", config.n_embd);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = embed(g, *embedding_, positions_);  // [n_tokens, n_embd]
    const AttentionParams params = {.scale = attention_scale(config), .alibi_max_bias = max_bias_};
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      ValueId h = named(g, i, "attn_norm", layer_norm(g, x, w.attn_norm, eps));  // [n_tokens, n_embd]
      Heads heads = project_heads(g, h, w.attn, config, i);
      clamp_heads(g, heads, qkv_limit_);
      if (w.q_norm.weight) layer_norm_rows(g, heads, w.q_norm, w.k_norm, eps);
      h = attention(g, heads, model.cache_desc(i, cache), params);  // [n_tokens, n_head * value_dim]
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);  // [n_outputs, n_head * value_dim]
        x = g.select_rows(x);  // [n_outputs, n_embd]
      }
      named(g, i, "attn_heads", h);
      h = named(g, i, "attn_out", linear(g, h, w.attn.out));  // [n_rows, n_embd]
      x = g.add(x, h);                                        // [n_rows, n_embd]

      h = named(g, i, "ffn_norm", layer_norm(g, x, w.ffn_norm, eps));  // [n_rows, n_embd]
      h = feed_forward(g, h, w.ffn, UnaryKind::kGeluTanh);             // [n_rows, n_embd]
      x = named(g, i, "out", g.add(x, named(g, i, "ffn_out", h)));     // [n_rows, n_embd]
    }
    g.set_layer(kOutputLayer);
    const ValueId hidden = layer_norm(g, x, output_norm_, eps);  // [n_outputs, n_embd]
    const ValueId logits = head_logits(g, hidden, head_);        // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits);
  }

 private:
  struct Layer {
    LayerNorm attn_norm;  // [n_embd]
    AttentionWeights attn;
    LayerNorm q_norm, k_norm;  // [n_head * key_dim], [n_kv_head * key_dim]; empty if the file has none
    LayerNorm ffn_norm;        // [n_embd]
    FeedForwardWeights ffn;
  };

  const Weight* embedding_ = nullptr;  // [n_vocab, n_embd]
  const Weight* positions_ = nullptr;  // [context_length, n_embd], null if the file has none
  std::vector<Layer> layers_;          // [n_layer]
  LayerNorm output_norm_;              // [n_embd]
  Linear head_;                        // [n_vocab, n_embd]
  float max_bias_ = 0;                 // of ALiBi
  float qkv_limit_ = 0;                // 0: none
};

}  // namespace

std::unique_ptr<Architecture> create_mpt() { return std::make_unique<Mpt>(); }

}  // namespace infer
