#include "src/model/blocks/delta_net.h"

#include <cmath>

#include "ggml-like/error.h"
#include "ggml-like/message.h"

namespace infer {
namespace {

constexpr WeightRole kRole = WeightRole::kRecurrent;

int64_t key_channels(const SsmConfig& ssm) { return int64_t{ssm.n_group} * ssm.n_state; }
int64_t conv_channels(const SsmConfig& ssm) { return 2 * key_channels(ssm) + ssm.n_inner; }

DeltaNetWeights declare_all_but_steps(WeightSet& weights, const ModelConfig& config, int layer) {
  const SsmConfig& ssm = config.ssm;
  const int64_t channels = conv_channels(ssm), d = config.n_embd;
  DeltaNetWeights w;
  w.qkv = declare_linear(weights, layer, WeightRole::kAttention, "attn_qkv", channels, d);
  w.gate = declare_linear(weights, layer, WeightRole::kAttention, "attn_gate", ssm.n_inner, d);
  w.conv = declare_conv(weights, layer, "ssm_conv1d", channels, ssm.conv_width);
  w.dt_bias = weights.require(layer, kRole, "ssm_dt.bias", {ssm.n_head});
  w.a = weights.require(layer, kRole, "ssm_a", {ssm.n_head});
  w.norm = declare_norm(weights, layer, "ssm_norm", ssm.n_inner / ssm.n_head);
  w.out = declare_linear(weights, layer, kRole, "ssm_out", d, ssm.n_inner);
  return w;
}

}  // namespace

void check_delta_net_sizes(const ModelConfig& config) {
  const SsmConfig& ssm = config.ssm;
  if (ssm.n_inner % ssm.n_head == 0 && ssm.n_head % ssm.n_group == 0) return;
  reject_value(concat(config.architecture, ".ssm.time_step_rank"),
               concat("a divisor of ", ssm.n_inner, " and a multiple of ", ssm.n_group), ssm.n_head);
}

int64_t delta_net_state_values(const SsmConfig& ssm) {
  return conv_state_values(ssm.conv_width, conv_channels(ssm)) + int64_t{ssm.n_inner} * ssm.n_state;
}

DeltaNetWeights declare_delta_net(WeightSet& weights, const ModelConfig& config, int layer) {
  DeltaNetWeights w = declare_all_but_steps(weights, config, layer);
  w.beta = declare_linear(weights, layer, kRole, "ssm_beta", config.ssm.n_head, config.n_embd);
  w.alpha = declare_linear(weights, layer, kRole, "ssm_alpha", config.ssm.n_head, config.n_embd);
  return w;
}

DeltaNetWeights declare_delta_net_joined(WeightSet& weights, const ModelConfig& config, int layer) {
  DeltaNetWeights w = declare_all_but_steps(weights, config, layer);
  w.beta_alpha = declare_linear(weights, layer, kRole, "ssm_ba", 2 * config.ssm.n_head, config.n_embd);
  return w;
}

ValueId delta_net(Graph& g, ValueId x, const DeltaNetWeights& w, const ModelConfig& config,
                  const DeltaRuleParams& params, const CacheDesc& state) {
  const SsmConfig& ssm = config.ssm;
  const int64_t keys = key_channels(ssm), n = ssm.n_state, head_dim = ssm.n_inner / ssm.n_head;
  ValueId beta, alpha;  // [n_tokens, n_head]
  if (w.beta_alpha.weight) {
    // For each group the rows of beta, then those of alpha.
    const int64_t heads = ssm.n_head / ssm.n_group;
    const ValueId both = linear(g, x, w.beta_alpha);  // [n_tokens, 2 * n_head]
    beta = slice_groups(g, both, 2 * heads, 0, heads);
    alpha = slice_groups(g, both, 2 * heads, heads, heads);
  } else {
    beta = linear(g, x, w.beta);
    alpha = linear(g, x, w.alpha);
  }
  const ValueId gate = linear(g, x, w.gate);  // [n_tokens, n_inner]
  const ValueId qkv = g.short_conv(linear(g, x, w.qkv), *w.conv, nullptr, {.silu = true}, state);
  const float scale = 1 / std::sqrt(static_cast<float>(n));
  const ValueId q = l2_norm(g, split_heads(g, g.view_columns(qkv, 0, keys), n), config.norm_eps, scale);
  const ValueId k = l2_norm(g, split_heads(g, g.view_columns(qkv, keys, keys), n), config.norm_eps);
  const ValueId v = split_heads(g, g.view_columns(qkv, 2 * keys, ssm.n_inner), head_dim);
  const CacheDesc rest = after(state, conv_state_values(ssm.conv_width, conv_channels(ssm)));
  ValueId y = g.delta_rule({q, k, v, g.add(alpha, g.weight(*w.dt_bias)), g.unary(beta, UnaryKind::kSigmoid)}, *w.a,
                           params, rest);  // [n_tokens, n_inner]
  y = g.rms_norm(split_heads(g, y, head_dim), w.norm, config.norm_eps);
  return g.gated_activation(gate, g.reshape(y, {g.token_bucket(), ssm.n_inner}), UnaryKind::kSilu);
}

ValueId l2_norm(Graph& g, ValueId x, float eps, float factor) {
  const auto n = static_cast<float>(g.value(x).desc.shape.last());
  return g.scale(g.rms_norm(x, nullptr, eps / n), factor / std::sqrt(n));
}

GatedAttentionWeights declare_gated_attention(WeightSet& weights, const ModelConfig& config, int layer) {
  const WeightRole role = WeightRole::kAttention;
  const LayerConfig& l = config.layers[layer];
  const int64_t d = config.n_embd, key_dim = config.key_dim;
  if (config.value_dim != config.key_dim) {
    throw Error(ErrorCode::kUnsupported,
                expected_found("model", concat("key ", config.architecture, ".attention.value_length"),
                               concat(config.key_dim, ", that of keys"), config.value_dim));
  }
  GatedAttentionWeights w;
  const int64_t n_q = 2 * l.n_head * key_dim, n_kv = l.n_kv_head * key_dim;
  if (weights.has(layer, "attn_qkv.weight")) {
    w.qkv = declare_linear(weights, layer, role, "attn_qkv", n_q + 2 * n_kv, d);
  } else {
    w.q = declare_linear(weights, layer, role, "attn_q", n_q, d);
    w.k = declare_linear(weights, layer, role, "attn_k", n_kv, d);
    w.v = declare_linear(weights, layer, role, "attn_v", n_kv, d);
  }
  w.out = declare_linear(weights, layer, role, "attn_output", d, l.n_head * key_dim);
  w.q_norm = declare_norm(weights, layer, "attn_q_norm", key_dim);
  w.k_norm = declare_norm(weights, layer, "attn_k_norm", key_dim);
  return w;
}

ValueId gated_attention(Graph& g, ValueId x, const GatedAttentionWeights& w, const ModelConfig& config,
                        ValueId rope_table, const CacheDesc& cache, float scale) {
  const int64_t d = config.key_dim;
  ValueId both, k, v;  // [n_tokens, 2 * n_head * key_dim], twice [n_tokens, n_kv_head * key_dim]
  if (w.qkv.weight) {
    const int64_t n_kv = int64_t{cache.n_kv_head} * d, n_q = w.qkv.weight->desc.shape[0] - 2 * n_kv;
    const ValueId qkv = linear(g, x, w.qkv);
    both = g.view_columns(qkv, 0, n_q);
    k = g.view_columns(qkv, n_q, n_kv);
    v = g.view_columns(qkv, n_q + n_kv, n_kv);
  } else {
    both = linear(g, x, w.q);
    k = linear(g, x, w.k);
    v = linear(g, x, w.v);
  }
  const ValueId gate = slice_groups(g, both, 2 * d, d, d);  // [n_tokens, n_head * key_dim]
  Heads heads = {split_heads(g, slice_groups(g, both, 2 * d, 0, d), d), split_heads(g, k, d), split_heads(g, v, d)};
  rms_norm_heads(g, heads, w.q_norm, w.k_norm, config.norm_eps);
  rope_neox(g, heads, rope_table);
  const ValueId y = attention(g, heads, cache, {.scale = scale});  // [n_tokens, n_head * key_dim]
  return g.gated_activation(gate, y, UnaryKind::kSigmoid);
}

}  // namespace infer
