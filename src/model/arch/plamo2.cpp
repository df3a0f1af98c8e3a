// plamo2: Mamba-2 layers with norms on time steps, b and c, mixed with attention; norms before and after mixer and
// feed-forward; every head of queries and keys is normalized with its own weights. A layer without key and value heads
// is recurrent.
#include <cmath>

#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class Plamo2 final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader, /*fewest_heads=*/0);
    config.norm_eps = read_rms_norm_eps(reader);
    config.rope = read_rope(reader, config);
    require_full_causal_attention(reader, config);
    reader.only("use_parallel_residual", {0});
    read_no_experts(reader);
    reader.only("ssm.group_count", {0});
    config.ssm = read_ssm(reader);
    check_mamba2_sizes(config);
    mark_recurrent_layers(config, mamba_state_values(config.ssm));
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    const WeightRole norm = WeightRole::kNorm;
    embedding_ = declare_embedding(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      w.attn_post_norm = weights.require(i, norm, "post_attention_norm", {config.n_embd});
      if (config.layers[i].n_kv_head > 0) {
        w.attn = declare_joined_attention(weights, config, i);
        w.q_norm = declare_norm(weights, i, "attn_q_norm", int64_t{config.layers[i].n_head} * config.key_dim);
        w.k_norm = declare_norm(weights, i, "attn_k_norm", int64_t{config.layers[i].n_kv_head} * config.key_dim);
      } else {
        declare_mixer(weights, config, i, w.mamba);
      }
      w.ffn_norm = declare_norm(weights, i, "ffn_norm", config.n_embd);
      w.ffn_post_norm = weights.require(i, norm, "post_ffw_norm", {config.n_embd});
      w.ffn = declare_joined_feed_forward(weights, config, i);
    }
    output_norm_ = declare_norm(weights, kOutputLayer, "output_norm", config.n_embd);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = embed(g, *embedding_);                // [n_tokens, n_embd]
    const ValueId table = g.rope_table(config.rope);  // [n_tokens, rope.n_dims / 2, 2]
    const AttentionParams params = {.scale = 1 / std::sqrt(static_cast<float>(config.value_dim))};
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      const bool attends = config.layers[i].n_kv_head > 0;
      ValueId h = named(g, i, "attn_norm", g.rms_norm(x, w.attn_norm, eps));  // [n_tokens, n_embd]
      if (attends) {
        Heads heads = project_heads(g, h, w.attn, config, i);
        rms_norm_each_head(g, heads, w.q_norm, w.k_norm, eps);
        rope_neox(g, heads, table);
        h = attention(g, heads, model.cache_desc(i, cache), params);  // [n_tokens, n_head * value_dim]
      } else {
        h = mixer(g, h, w.mamba, config, model.state_desc(i));  // [n_tokens, n_inner]
      }
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);  // [n_outputs, n_head * value_dim or n_inner]
        x = g.select_rows(x);  // [n_outputs, n_embd]
      }
      named(g, i, "attn_heads", h);
      h = named(g, i, "attn_out", linear(g, h, attends ? w.attn.out : w.mamba.out));  // [n_rows, n_embd]
      x = g.add(x, g.rms_norm(h, w.attn_post_norm, eps));                             // [n_rows, n_embd]

      h = named(g, i, "ffn_norm", g.rms_norm(x, w.ffn_norm, eps));  // [n_rows, n_embd]
      h = gated_feed_forward(g, h, w.ffn, UnaryKind::kSilu);        // [n_rows, n_embd]
      h = g.rms_norm(h, w.ffn_post_norm, eps);                      // [n_rows, n_embd]
      x = named(g, i, "out", g.add(x, named(g, i, "ffn_out", h)));  // [n_rows, n_embd]
    }
    g.set_layer(kOutputLayer);
    const ValueId hidden = g.rms_norm(x, output_norm_, eps);  // [n_outputs, n_embd]
    const ValueId logits = head_logits(g, hidden, head_);     // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits);
  }

 private:
  struct Layer {
    const Weight *attn_norm = nullptr, *attn_post_norm = nullptr;  // [n_embd]
    AttentionWeights attn;
    const Weight* q_norm = nullptr;                              // [n_head * key_dim]
    const Weight* k_norm = nullptr;                              // [n_kv_head * key_dim]
    MambaWeights mamba;                                          // of layers without attention; shapes below
    const Weight *ffn_norm = nullptr, *ffn_post_norm = nullptr;  // [n_embd]
    JoinedFeedForwardWeights ffn;
  };

  static int64_t time_step_rank(const ModelConfig& config) { return std::max(64, config.n_embd / 16); }

  // Rows of `in`, per head: those of the gate, then those of x. Rows of `x`: b, c and time steps. Time steps, a and d
  // are per head.
  static void declare_mixer(WeightSet& weights, const ModelConfig& config, int layer, MambaWeights& w) {
    const WeightRole role = WeightRole::kRecurrent, norm = WeightRole::kNorm;
    const SsmConfig& ssm = config.ssm;
    const int64_t inner = ssm.n_inner, n = ssm.n_state, rank = time_step_rank(config);
    w.in = declare_linear(weights, layer, role, "ssm_in", 2 * inner, config.n_embd);
    w.conv = declare_conv(weights, layer, "ssm_conv1d", inner, ssm.conv_width);
    w.x = declare_linear(weights, layer, role, "ssm_x", 2 * n + rank, inner);
    w.dt_norm = weights.require(layer, norm, "ssm_dt_norm", {rank});
    w.b_norm = weights.require(layer, norm, "ssm_b_norm", {n});
    w.c_norm = weights.require(layer, norm, "ssm_c_norm", {n});
    w.dt = declare_linear(weights, layer, role, "ssm_dt", ssm.n_head, rank);
    w.a = weights.require(layer, role, "ssm_a", {ssm.n_head});
    w.d = weights.require(layer, role, "ssm_d", {ssm.n_head});
    w.out = declare_linear(weights, layer, role, "ssm_out", config.n_embd, inner);
  }

  // x [n_tokens, n_embd] -> [n_tokens, n_inner].
  static ValueId mixer(Graph& g, ValueId x, const MambaWeights& w, const ModelConfig& config, const CacheDesc& state) {
    const SsmConfig& ssm = config.ssm;
    const int64_t inner = ssm.n_inner, n = ssm.n_state, head_dim = inner / ssm.n_head;
    const ValueId joined = linear(g, x, w.in);                                // [n_tokens, 2 * n_inner]
    const ValueId gate = slice_groups(g, joined, 2 * head_dim, 0, head_dim);  // [n_tokens, n_inner]
    x = slice_groups(g, joined, 2 * head_dim, head_dim, head_dim);            // [n_tokens, n_inner]
    x = g.short_conv(x, *w.conv, nullptr, {.silu = true}, state);
    const ValueId parts = linear(g, x, w.x);  // [n_tokens, 2 * n_state + rank]
    const ValueId b = g.rms_norm(g.view_columns(parts, 0, n), w.b_norm, config.norm_eps);
    const ValueId c = g.rms_norm(g.view_columns(parts, n, n), w.c_norm, config.norm_eps);
    const ValueId dt = g.rms_norm(g.view_columns(parts, 2 * n, time_step_rank(config)), w.dt_norm, config.norm_eps);
    const CacheDesc rest = after(state, conv_state_values(ssm.conv_width, inner));
    const ValueId y =
        g.selective_scan({split_heads(g, x, head_dim), linear(g, dt, w.dt), split_heads(g, b, n), split_heads(g, c, n)},
                         *w.a, w.d, rest);
    return g.gated_activation(gate, y, UnaryKind::kSilu);
  }

  const Weight* embedding_ = nullptr;    // [n_vocab, n_embd]
  std::vector<Layer> layers_;            // [n_layer]
  const Weight* output_norm_ = nullptr;  // [n_embd]
  Linear head_;                          // [n_vocab, n_embd]
};

}  // namespace

std::unique_ptr<Architecture> create_plamo2() { return std::make_unique<Plamo2>(); }

}  // namespace infer
