// lfm2 and lfm2moe: gated short convolutions mixed with attention that normalizes the heads of queries and keys, each
// followed by a feed-forward; lfm2moe has routed experts instead, after the leading dense layers. A layer without key
// and value heads is a convolution.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class Lfm2 final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader, /*fewest_heads=*/0);
    config.norm_eps = read_rms_norm_eps(reader);
    config.rope = read_rope(reader, config);
    read_windows(reader, config, 0, 0);
    reader.only("use_parallel_residual", {0});
    read_experts(reader, config);
    read_routing(reader, config, Gating::kSoftmax);
    reader.only("expert_weights_norm", {1});
    config.routing.normalize = true;
    read_no_shared_expert(reader);
    config.ssm.conv_width = reader.count("shortconv.l_cache", 2, kMaxConvWidth);
    mark_recurrent_layers(config, conv_state_values(config.ssm.conv_width, config.n_embd));
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    embedding_ = declare_embedding(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      if (config.layers[i].n_kv_head == 0) {
        const WeightRole role = WeightRole::kRecurrent;
        w.conv_in = declare_linear(weights, i, role, "shortconv.in_proj", 3 * int64_t{config.n_embd}, config.n_embd);
        w.conv = declare_conv(weights, i, "shortconv.conv", config.n_embd, config.ssm.conv_width);
        w.out = declare_linear(weights, i, role, "shortconv.out_proj", config.n_embd, config.n_embd);
      } else {
        w.attn = declare_joined_attention(weights, config, i);
        w.q_norm = declare_norm(weights, i, "attn_q_norm", config.key_dim);
        w.k_norm = declare_norm(weights, i, "attn_k_norm", config.key_dim);
        w.out = w.attn.out;
      }
      w.ffn_norm = declare_norm(weights, i, "ffn_norm", config.n_embd);
      w.ffn = declare_layer_feed_forward(weights, config, i);
    }
    output_norm_ = declare_norm(weights, kOutputLayer, "token_embd_norm", config.n_embd);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = embed(g, *embedding_);                // [n_tokens, n_embd]
    const ValueId table = g.rope_table(config.rope);  // [n_tokens, rope.n_dims / 2, 2]
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      ValueId h = named(g, i, "attn_norm", g.rms_norm(x, w.attn_norm, eps));  // [n_tokens, n_embd]
      if (w.conv) {
        h = convolution(g, h, w, model.state_desc(i));  // [n_tokens, n_embd]
      } else {
        Heads heads = project_heads(g, h, w.attn, config, i);
        rms_norm_heads(g, heads, w.q_norm, w.k_norm, eps);
        rope_neox(g, heads, table);
        const AttentionParams params = {.scale = attention_scale(config), .window = config.layers[i].window};
        h = attention(g, heads, model.cache_desc(i, cache), params);  // [n_tokens, n_head * value_dim]
      }
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);  // [n_outputs, n_embd or n_head * value_dim]
        x = g.select_rows(x);  // [n_outputs, n_embd]
      }
      named(g, i, "attn_heads", h);
      h = named(g, i, "attn_out", linear(g, h, w.out));  // [n_rows, n_embd]
      x = g.add(x, h);                                   // [n_rows, n_embd]

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
    Linear conv_in;                     // of convolutions: [3 * n_embd, n_embd]
    const Weight* conv = nullptr;       // [n_embd, conv_width]
    AttentionWeights attn;              // of the other layers
    const Weight* q_norm = nullptr;     // [key_dim]
    const Weight* k_norm = nullptr;     // [key_dim]
    Linear out;                         // [n_embd, n_embd or n_head * value_dim]
    const Weight* ffn_norm = nullptr;   // [n_embd]
    LayerFeedForwardWeights ffn;
  };

  // x [n_tokens, n_embd] -> the same shape: c * conv(b * x'), where b, c and x' come from one matrix.
  static ValueId convolution(Graph& g, ValueId x, const Layer& w, const CacheDesc& state) {
    const int64_t d = w.conv->desc.shape[0];
    const ValueId bcx = linear(g, x, w.conv_in);  // [n_tokens, 3 * n_embd]
    const ValueId in = g.mul(g.view_columns(bcx, 0, d), g.view_columns(bcx, 2 * d, d));
    return g.mul(g.view_columns(bcx, d, d), g.short_conv(in, *w.conv, nullptr, {}, state));
  }

  const Weight* embedding_ = nullptr;    // [n_vocab, n_embd]
  std::vector<Layer> layers_;            // [n_layer]
  const Weight* output_norm_ = nullptr;  // [n_embd]
  Linear head_;                          // [n_vocab, n_embd]
};

}  // namespace

std::unique_ptr<Architecture> create_lfm2() { return std::make_unique<Lfm2>(); }

}  // namespace infer
