#include "src/model/blocks/gemma_layers.h"

#include <cmath>

#include "src/model/blocks/in_and_out.h"
#include "src/model/blocks/linear.h"

namespace infer {

void GemmaLayers::declare(WeightSet& weights, const ModelConfig& config) {
  embedding_ = declare_embedding(weights, config);
  for (int i = 0; i < config.n_layer; ++i) {
    Layer& w = layers_.emplace_back();
    w.attn_norm = declare_norm(weights, i, "attn_norm", config.n_embd);
    w.attn = declare_joined_attention(weights, config, i);
    w.q_norm = declare_norm(weights, i, "attn_q_norm", config.key_dim);
    w.k_norm = declare_norm(weights, i, "attn_k_norm", config.key_dim);
    w.attn_post_norm = declare_norm(weights, i, "post_attention_norm", config.n_embd);
    w.ffn_norm = declare_norm(weights, i, "ffn_norm", config.n_embd);
    w.ffn = declare_gated_feed_forward(weights, config, i);
    w.ffn_post_norm = declare_norm(weights, i, "post_ffw_norm", config.n_embd);
  }
  output_norm_ = declare_norm(weights, kOutputLayer, "output_norm", config.n_embd);
}

ValueId GemmaLayers::build(Graph& g, const Model& model, CacheTypes cache, float attention_scale) const {
  const ModelConfig& config = model.config();
  const float eps = config.norm_eps;
  ValueId x = g.scale(embed(g, *embedding_), std::sqrt(static_cast<float>(config.n_embd)));  // [n_tokens, n_embd]
  const ValueId table = g.rope_table(config.rope);  // [n_tokens, rope.n_dims / 2, 2]
  const ValueId window_table = g.rope_table(config.rope_window);
  for (int i = 0; i < config.n_layer; ++i) {
    g.set_layer(i);
    const Layer& w = layers_[i];
    const int window = config.layers[i].window;
    const AttentionParams params = {.scale = attention_scale, .causal = config.causal, .window = window};
    ValueId h = named(g, i, "attn_norm", g.rms_norm(x, w.attn_norm, eps));  // [n_tokens, n_embd]
    Heads heads = project_heads(g, h, w.attn, config, i);
    rms_norm_heads(g, heads, w.q_norm, w.k_norm, eps);
    rope_neox(g, heads, window > 0 ? window_table : table);
    h = attention(g, heads, model.cache_desc(i, cache), params);  // [n_tokens, n_head * value_dim]
    // From here on, the last layer needs only the output rows.
    if (i + 1 == config.n_layer) {
      h = g.select_rows(h);  // [n_outputs, n_head * value_dim]
      x = g.select_rows(x);  // [n_outputs, n_embd]
    }
    named(g, i, "attn_heads", h);
    h = named(g, i, "attn_out", linear(g, h, w.attn.out));  // [n_rows, n_embd]
    h = g.rms_norm(h, w.attn_post_norm, eps);               // [n_rows, n_embd]
    x = g.add(x, h);                                        // [n_rows, n_embd]

    h = named(g, i, "ffn_norm", g.rms_norm(x, w.ffn_norm, eps));  // [n_rows, n_embd]
    h = gated_feed_forward(g, h, w.ffn, UnaryKind::kGeluTanh);    // [n_rows, n_embd]
    h = g.rms_norm(h, w.ffn_post_norm, eps);                      // [n_rows, n_embd]
    x = named(g, i, "out", g.add(x, named(g, i, "ffn_out", h)));  // [n_rows, n_embd]
  }
  g.set_layer(kOutputLayer);
  return g.rms_norm(x, output_norm_, eps);
}

}  // namespace infer
