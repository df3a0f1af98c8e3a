// modern-bert: an encoder with layer norms without biases before attention and feed-forward (in layer 0 the embedding's
// norm takes the place of the first), NeoX rope, and a two-sided window in all but every third layer. The two kinds of
// layers have different rope bases. Gate and up are one matrix.
#include <array>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "ggml-like/printable.h"
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"
#include "src/model/classifier.h"

namespace infer {
namespace {

class ModernBert final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_layer_norm_eps(reader);
    require_encoder(reader, config);
    read_classifier(reader, config, {.pooling = Pooling::kMean, .activation = UnaryKind::kGeluTanh});
    config.rope = read_rope(reader, config);
    read_windows_after_first(reader, config, 0, 3);
    read_no_experts(reader);
    activation_ = read_activation(reader);
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    embedding_ = declare_embedding(weights, config);
    embedding_norm_ = declare_norm(weights, kInputLayer, "token_embd_norm", config.n_embd);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      if (i > 0 || weights.has(i, "attn_norm.weight")) {
        w.attn_norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      }
      w.attn = declare_joined_attention(weights, config, i);
      w.ffn_norm = declare_norm(weights, i, "ffn_norm", config.n_embd);
      w.ffn = declare_joined_feed_forward(weights, config, i);
    }
    output_norm_ = declare_norm(weights, kOutputLayer, "output_norm", config.n_embd);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = embed(g, *embedding_);                   // [n_tokens, n_embd]
    x = g.layer_norm(x, embedding_norm_, nullptr, eps);  // [n_tokens, n_embd]
    const ValueId table = g.rope_table(config.rope);     // [n_tokens, rope.n_dims / 2, 2]
    const ValueId window_table = g.rope_table(config.rope_window);
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      const int window = config.layers[i].window;
      const AttentionParams params = {.scale = attention_scale(config), .causal = false, .window = window};
      ValueId h = w.attn_norm ? g.layer_norm(x, w.attn_norm, nullptr, eps) : x;  // [n_tokens, n_embd]
      Heads heads = project_heads(g, h, w.attn, config, i);
      rope_neox(g, heads, window > 0 ? window_table : table);
      h = attention(g, heads, model.cache_desc(i, cache), params);  // [n_tokens, n_head * value_dim]
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);  // [n_outputs, n_head * value_dim]
        x = g.select_rows(x);  // [n_outputs, n_embd]
      }
      named(g, i, "attn_heads", h);
      h = named(g, i, "attn_out", linear(g, h, w.attn.out));  // [n_rows, n_embd]
      x = g.add(x, h);                                        // [n_rows, n_embd]

      h = named(g, i, "ffn_norm", g.layer_norm(x, w.ffn_norm, nullptr, eps));  // [n_rows, n_embd]
      h = gated_feed_forward(g, h, w.ffn, activation_);                        // [n_rows, n_embd]
      x = named(g, i, "out", g.add(x, named(g, i, "ffn_out", h)));             // [n_rows, n_embd]
    }
    g.set_layer(kOutputLayer);
    return encoder_outputs(g, g.layer_norm(x, output_norm_, nullptr, eps));  // [n_outputs, n_embd]
  }

 private:
  struct Layer {
    const Weight* attn_norm = nullptr;  // [n_embd], null in layer 0
    AttentionWeights attn;
    const Weight* ffn_norm = nullptr;  // [n_embd]
    JoinedFeedForwardWeights ffn;
  };

  static UnaryKind read_activation(ConfigReader& reader) {
    constexpr std::array<std::pair<std::string_view, UnaryKind>, 3> kActivations = {
        {{"gelu", UnaryKind::kGeluTanh}, {"silu", UnaryKind::kSilu}, {"swish", UnaryKind::kSilu}}};
    const std::string name = reader.text("hidden_activation", "gelu");
    for (const auto& [known, kind] : kActivations) {
      if (known == name) return kind;
    }
    throw Error(ErrorCode::kUnsupported, expected_found("model", "key modern-bert.hidden_activation",
                                                        "gelu, silu or swish", printable(name, 60)));
  }

  const Weight* embedding_ = nullptr;       // [n_vocab, n_embd]
  const Weight* embedding_norm_ = nullptr;  // [n_embd]
  std::vector<Layer> layers_;               // [n_layer]
  const Weight* output_norm_ = nullptr;     // [n_embd]
  UnaryKind activation_ = UnaryKind::kGeluTanh;
};

}  // namespace

std::unique_ptr<Architecture> create_modern_bert() { return std::make_unique<ModernBert>(); }

}  // namespace infer
