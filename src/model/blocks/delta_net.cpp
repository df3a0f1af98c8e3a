#include "src/model/blocks/delta_net.h"

#include <cmath>

#include "ggml-like/message.h"
#include "src/model/blocks/attention.h"

namespace infer {
namespace {

constexpr WeightRole kDeltaNetRole = WeightRole::kRecurrent;

int64_t key_channels(const SsmConfig& ssm) { return int64_t{ssm.n_group} * ssm.n_state; }
int64_t delta_conv_channels(const SsmConfig& ssm) { return 2 * key_channels(ssm) + ssm.n_inner; }

DeltaNetWeights declare_all_but_steps(WeightSet& weights, const ModelConfig& config, int layer) {
  const SsmConfig& ssm = config.ssm;
  const int64_t channels = delta_conv_channels(ssm), d = config.n_embd;
  DeltaNetWeights w;
  w.qkv = declare_linear(weights, layer, WeightRole::kAttention, "attn_qkv", channels, d);
  w.gate = declare_linear(weights, layer, WeightRole::kAttention, "attn_gate", ssm.n_inner, d);
  w.conv = declare_conv(weights, layer, "ssm_conv1d", channels, ssm.conv_width);
  w.dt_bias = weights.require(layer, kDeltaNetRole, "ssm_dt.bias", {ssm.n_head});
  w.a = weights.require(layer, kDeltaNetRole, "ssm_a", {ssm.n_head});
  w.norm = declare_norm(weights, layer, "ssm_norm", ssm.n_inner / ssm.n_head);
  w.out = declare_linear(weights, layer, kDeltaNetRole, "ssm_out", d, ssm.n_inner);
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
  return conv_state_values(ssm.conv_width, delta_conv_channels(ssm)) + int64_t{ssm.n_inner} * ssm.n_state;
}

void read_delta_net_layers(ConfigReader& reader, ModelConfig& config) {
  const int predicting = reader.count("nextn_predict_layers", 0, config.n_layer - 1, 0);
  const auto listed = reader.flags("attention.recurrent_layers", config.n_layer);
  const int interval = reader.count("full_attention_interval", 1, kMaxLayers, 4);
  for (int i = 0; i < config.n_layer - predicting; ++i) {
    if (listed ? (*listed)[i] : (i + 1) % interval != 0) config.layers[i].n_kv_head = 0;
  }
  mark_recurrent_layers(config, delta_net_state_values(config.ssm));
}

DeltaNetWeights declare_delta_net(WeightSet& weights, const ModelConfig& config, int layer) {
  DeltaNetWeights w = declare_all_but_steps(weights, config, layer);
  w.beta = declare_linear(weights, layer, kDeltaNetRole, "ssm_beta", config.ssm.n_head, config.n_embd);
  w.alpha = declare_linear(weights, layer, kDeltaNetRole, "ssm_alpha", config.ssm.n_head, config.n_embd);
  return w;
}

DeltaNetWeights declare_delta_net_joined(WeightSet& weights, const ModelConfig& config, int layer) {
  DeltaNetWeights w = declare_all_but_steps(weights, config, layer);
  w.beta_alpha = declare_linear(weights, layer, kDeltaNetRole, "ssm_ba", 2 * config.ssm.n_head, config.n_embd);
  return w;
}

ValueId delta_net(Graph& g, ValueId x, const DeltaNetWeights& w, const ModelConfig& config,
                  const DeltaRuleParams& params, const CacheDesc& state, UnaryKind gate_kind) {
  const SsmConfig& ssm = config.ssm;
  const int64_t keys = key_channels(ssm), n = ssm.n_state, head_dim = ssm.n_inner / ssm.n_head;
  ValueId beta, alpha;  // [n_tokens, n_head]
  if (w.beta_alpha.weight) {
    // Per group: the rows of beta, then those of alpha.
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
  const CacheDesc rest = after(state, conv_state_values(ssm.conv_width, delta_conv_channels(ssm)));
  ValueId y = g.delta_rule({q, k, v, g.add(alpha, g.weight(*w.dt_bias)), g.unary(beta, UnaryKind::kSigmoid)}, *w.a,
                           params, rest);  // [n_tokens, n_inner]
  y = g.rms_norm(split_heads(g, y, head_dim), w.norm, config.norm_eps);
  return g.gated_activation(gate, g.reshape(y, {g.token_bucket(), ssm.n_inner}), gate_kind);
}

ValueId l2_norm(Graph& g, ValueId x, float eps, float factor) {
  const auto n = static_cast<float>(g.value(x).desc.shape.last());
  return g.scale(g.rms_norm(x, nullptr, eps / n), factor / std::sqrt(n));
}

}  // namespace infer
