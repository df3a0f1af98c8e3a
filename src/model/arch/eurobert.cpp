// Encoders with RMS norms before attention and feed-forward, rope, and a SiLU gate:
//   eurobert: NeoX rope;
//   neo-bert: interleaved rope; queries, keys and values are one matrix, as are gate and up.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"
#include "src/model/classifier.h"

namespace infer {
namespace {

class EuroBert final : public Architecture {
 public:
  explicit EuroBert(bool is_neo) : is_neo_(is_neo) {}

  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_rms_norm_eps(reader);
    require_encoder(reader, config);
    if (is_neo_) read_classifier(reader, config, {});
    config.rope = read_rope(reader, config);
    read_no_experts(reader);
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    embedding_ = declare_embedding(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      w.attn = declare_joined_attention(weights, config, i);
      w.ffn_norm = declare_norm(weights, i, "ffn_norm", config.n_embd);
      if (is_neo_) {
        w.joined = declare_joined_feed_forward(weights, config, i);
      } else {
        w.ffn = declare_gated_feed_forward(weights, config, i);
      }
    }
    output_norm_ = declare_norm(weights, kOutputLayer, is_neo_ ? "enc.output_norm" : "output_norm", config.n_embd);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = embed(g, *embedding_);                // [n_tokens, n_embd]
    const ValueId table = g.rope_table(config.rope);  // [n_tokens, rope.n_dims / 2, 2]
    const AttentionParams params = {.scale = attention_scale(config), .causal = false};
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      ValueId h = named(g, i, "attn_norm", g.rms_norm(x, w.attn_norm, eps));  // [n_tokens, n_embd]
      Heads heads = project_heads(g, h, w.attn, config, i);
      is_neo_ ? rope_interleaved(g, heads, table) : rope_neox(g, heads, table);
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
      h = is_neo_ ? gated_feed_forward(g, h, w.joined, UnaryKind::kSilu)
                  : gated_feed_forward(g, h, w.ffn, UnaryKind::kSilu);  // [n_rows, n_embd]
      x = named(g, i, "out", g.add(x, named(g, i, "ffn_out", h)));      // [n_rows, n_embd]
    }
    g.set_layer(kOutputLayer);
    return encoder_outputs(g, g.rms_norm(x, output_norm_, eps));  // [n_outputs, n_embd]
  }

 private:
  struct Layer {
    const Weight* attn_norm = nullptr;  // [n_embd]
    AttentionWeights attn;
    const Weight* ffn_norm = nullptr;  // [n_embd]
    GatedFeedForwardWeights ffn;       // of eurobert
    JoinedFeedForwardWeights joined;   // of neo-bert
  };

  const bool is_neo_;
  const Weight* embedding_ = nullptr;    // [n_vocab, n_embd]
  std::vector<Layer> layers_;            // [n_layer]
  const Weight* output_norm_ = nullptr;  // [n_embd]
};

}  // namespace

std::unique_ptr<Architecture> create_eurobert() { return std::make_unique<EuroBert>(false); }
std::unique_ptr<Architecture> create_neo_bert() { return std::make_unique<EuroBert>(true); }

}  // namespace infer
