// deepseek32 and glm-dsa: latent attention to the positions that an indexer selects; leading dense layers, then routed
// experts plus shared ones. In glm-dsa, a layer without an indexer reuses the positions of the layer before. A
// prediction layer attends to all positions.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

// The differences between the two.
struct Variant {
  void (*read)(ConfigReader&, ModelConfig&);
  bool interleaved_index;  // rotates interleaved pairs of index queries and keys
};

void read_deepseek32(ConfigReader&, ModelConfig&) {}

// GLM 5 and 5.1 have an indexer in every layer. GLM 5.2, recognized by its longer context, has one in every fourth
// layer after the first two, which its files may leave unsaid.
void read_glm_dsa(ConfigReader& reader, ModelConfig& config) {
  constexpr int kContext52 = 1 << 20;
  reader.only("rope.scaling.yarn_log_multiplier", {0});
  if (predicts(config)) return reader.ignore("attention.indexer.types");
  std::vector<int> usual(config.n_layer, 1);
  for (int i = 2; i < config.n_layer && config.context_length >= kContext52; ++i) usual[i] = i % 4 == 2;
  const std::vector<int> types = reader.counts("attention.indexer.types", config.n_layer, 0, 1, &usual);
  if (types[0] == 0) reader.only("attention.indexer.types", {});
  for (int i = 0; i < config.n_layer; ++i) config.layers[i].indexed = types[i] != 0;
}

class DeepSeek32 final : public Architecture {
 public:
  explicit DeepSeek32(const Variant& variant) : variant_(variant) {}

  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_rms_norm_eps(reader);
    config.rope = read_rope(reader, config);
    reader.ignore("rope.dimension_sections");
    const float yarn_scale = read_yarn_magnitude(reader, config.rope, RotatedMagnitude::kRatio);
    read_latent_attention(reader, config);
    attention_scale_ = latent_attention_scale(config) * yarn_scale;
    require_full_causal_attention(reader, config);
    reader.only("use_parallel_residual", {0});
    read_experts(reader, config);
    require_experts(config);
    read_routing(reader, config, Gating::kSigmoid);
    read_shared_expert(reader, config);
    choose_layers(reader, config);
    read_latent_indexer(reader, config);
    variant_.read(reader, config);
    // The indexer matters only beyond `select.count` positions, and drafts need not be exact.
    if (predicts(config)) config.layers[0].sparse = config.layers[0].indexed = false;
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    input_ = declare_input(weights, config);
    ignore_prediction_layers(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      w.attn = declare_latent_attention(weights, config, i);
      if (config.layers[i].indexed) w.indexer = declare_indexer(weights, config, i);
      else ignore_indexer(weights, i);
      w.ffn_norm = declare_norm(weights, i, "ffn_norm", config.n_embd);
      w.ffn = declare_layer_feed_forward(weights, config, i);
    }
    output_norm_ = declare_output_norm(weights, config);
    head_ = declare_head(weights, config, input_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = embed(g, input_, eps);  // [n_tokens, n_embd]
    const LatentPositions positions = {.table = g.rope_table(config.rope), .interleaved = true};
    ValueId selected = kNoValue;  // [n_tokens, 1, select.count]
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      ValueId h = named(g, i, "attn_norm", g.rms_norm(x, w.attn_norm, eps));  // [n_tokens, n_embd]
      const CacheDesc desc = model.cache_desc(i, cache);
      if (config.layers[i].sparse) {
        const ValueId queries = compressed_queries(g, h, w.attn, config);  // [n_tokens, q_rank]
        if (config.layers[i].indexed) {
          selected = select_positions(g, h, queries, w.indexer, config, positions.table, variant_.interleaved_index,
                                      model.index_desc(i, cache));
        }
        // [n_tokens, n_head * value_dim]
        h = sparse_latent_attention(g, h, queries, w.attn, config, positions, desc, selected, attention_scale_);
      } else {
        h = latent_attention(g, h, w.attn, config, positions, desc, {.scale = attention_scale_});
      }
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
    LatentAttentionWeights attn;
    IndexerWeights indexer;            // empty in layers without one
    const Weight* ffn_norm = nullptr;  // [n_embd]
    LayerFeedForwardWeights ffn;
  };

  const Variant variant_;
  float attention_scale_ = 1;
  ModelInput input_;
  std::vector<Layer> layers_;            // [n_layer]
  const Weight* output_norm_ = nullptr;  // [n_embd]
  Linear head_;                          // [n_vocab, n_embd]
};

}  // namespace

std::unique_ptr<Architecture> create_deepseek32() {
  return std::make_unique<DeepSeek32>(Variant{read_deepseek32, false});
}
std::unique_ptr<Architecture> create_glm_dsa() { return std::make_unique<DeepSeek32>(Variant{read_glm_dsa, true}); }

}  // namespace infer
