// olmoe and minimax-m2: NeoX rope (partial in minimax-m2), a norm over all heads of queries and of keys, and routed
// experts: in olmoe with plain softmax weights, in minimax-m2 with sigmoid weights normalized to a sum of 1.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

void olmoe_routing(ConfigReader& reader, ModelConfig& config) {
  set_routing(reader, config, Gating::kSoftmax, Normalization::kNone);
}

void minimax_m2_routing(ConfigReader& reader, ModelConfig& config) {
  reader.only("expert_weights_norm", {1});
  read_routing(reader, config, Gating::kSigmoid);
  config.routing.normalize = true;
  // Experts are feed_forward_length wide, even if expert_feed_forward_length says otherwise.
  if (config.layers[0].n_ff > 0) config.n_ff_expert = config.layers[0].n_ff;
}

class Olmoe final : public Architecture {
 public:
  using ReadRouting = void (*)(ConfigReader&, ModelConfig&);
  explicit Olmoe(ReadRouting read_routing) : read_routing_(read_routing) {}

  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_rms_norm_eps(reader);
    config.rope = read_rope(reader, config);
    require_full_causal_attention(reader, config);
    reader.only("use_parallel_residual", {0});
    read_experts(reader, config);
    require_wide_experts(config);
    read_routing_(reader, config);
    read_no_shared_expert(reader);
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    embedding_ = declare_embedding(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      w.attn = declare_joined_attention(weights, config, i);
      const LayerConfig& l = config.layers[i];
      w.q_norm = declare_norm(weights, i, "attn_q_norm", l.n_head * config.key_dim);
      w.k_norm = declare_norm(weights, i, "attn_k_norm", l.n_kv_head * config.key_dim);
      w.ffn_norm = declare_norm(weights, i, "ffn_norm", config.n_embd);
      w.ffn = declare_layer_feed_forward(weights, config, i);
    }
    output_norm_ = declare_norm(weights, kOutputLayer, "output_norm", config.n_embd);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = embed(g, *embedding_);                // [n_tokens, n_embd]
    const ValueId table = g.rope_table(config.rope);  // [n_tokens, rope.n_dims / 2, 2]
    const AttentionParams params = {.scale = attention_scale(config)};
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      ValueId h = named(g, i, "attn_norm", g.rms_norm(x, w.attn_norm, eps));  // [n_tokens, n_embd]
      Heads heads = project_heads(g, h, w.attn, config, i);
      rms_norm_rows(g, heads, w.q_norm, w.k_norm, eps);
      rope_neox(g, heads, table);
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

 private:
  struct Layer {
    const Weight* attn_norm = nullptr;  // [n_embd]
    AttentionWeights attn;
    const Weight* q_norm = nullptr;    // [n_head * key_dim]
    const Weight* k_norm = nullptr;    // [n_kv_head * key_dim]
    const Weight* ffn_norm = nullptr;  // [n_embd]
    LayerFeedForwardWeights ffn;
  };

  const Weight* embedding_ = nullptr;    // [n_vocab, n_embd]
  std::vector<Layer> layers_;            // [n_layer]
  const Weight* output_norm_ = nullptr;  // [n_embd]
  Linear head_;                          // [n_vocab, n_embd]
  const ReadRouting read_routing_;
};

}  // namespace

std::unique_ptr<Architecture> create_olmoe() { return std::make_unique<Olmoe>(olmoe_routing); }

std::unique_ptr<Architecture> create_minimax_m2() { return std::make_unique<Olmoe>(minimax_m2_routing); }

}  // namespace infer
