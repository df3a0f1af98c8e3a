#include "src/model/blocks/mamba.h"

#include "ggml-like/message.h"

namespace infer {
namespace {

constexpr WeightRole kMambaRole = WeightRole::kRecurrent;

// The channels of Mamba-2's convolution: x, b and c.
int64_t mamba2_conv_channels(const SsmConfig& ssm) { return ssm.n_inner + int64_t{2} * ssm.n_group * ssm.n_state; }

// x [n_tokens, heads * dim] -> [n_tokens, heads, dim]: a view.
ValueId split(Graph& graph, ValueId x, int64_t heads) {
  const Shape& shape = graph.value(x).desc.shape;
  return graph.reshape(x, {shape[0], heads, shape[1] / heads});
}

}  // namespace

int64_t conv_state_values(int conv_width, int64_t channels) { return (conv_width - 1) * channels; }

CacheDesc after(const CacheDesc& state, int64_t values) {
  CacheDesc rest = state;
  rest.first_value += values;
  return rest;
}

const Weight* declare_conv(WeightSet& weights, int layer, std::string_view name, int64_t channels, int width) {
  return weights.require(layer, kMambaRole, concat(name, ".weight"), {channels, width});
}

int64_t mamba_state_values(const SsmConfig& ssm) {
  return conv_state_values(ssm.conv_width, ssm.n_inner) + int64_t{ssm.n_inner} * ssm.n_state;
}

MambaWeights declare_mamba(WeightSet& weights, const ModelConfig& config, int layer) {
  const SsmConfig& ssm = config.ssm;
  const int64_t inner = ssm.n_inner, n = ssm.n_state, rank = ssm.n_head;
  MambaWeights w;
  w.in = declare_linear(weights, layer, kMambaRole, "ssm_in", 2 * inner, config.n_embd);
  w.conv = declare_conv(weights, layer, "ssm_conv1d", inner, ssm.conv_width);
  w.conv_bias = weights.optional(layer, kMambaRole, "ssm_conv1d.bias", {inner});
  w.x = declare_linear(weights, layer, kMambaRole, "ssm_x", rank + 2 * n, inner);
  w.dt_norm = weights.optional(layer, WeightRole::kNorm, "ssm_dt_norm.weight", {rank});
  w.b_norm = weights.optional(layer, WeightRole::kNorm, "ssm_b_norm.weight", {n});
  w.c_norm = weights.optional(layer, WeightRole::kNorm, "ssm_c_norm.weight", {n});
  w.dt = declare_linear(weights, layer, kMambaRole, "ssm_dt", inner, rank);
  w.a = weights.require(layer, kMambaRole, "ssm_a", {inner, n});
  w.d = weights.require(layer, kMambaRole, "ssm_d", {inner});
  w.out = declare_linear(weights, layer, kMambaRole, "ssm_out", config.n_embd, inner);
  return w;
}

ValueId mamba(Graph& g, ValueId x, const MambaWeights& w, const ModelConfig& config, bool norms,
              const CacheDesc& state) {
  const SsmConfig& ssm = config.ssm;
  const int64_t inner = ssm.n_inner, n = ssm.n_state, rank = ssm.n_head;
  const ValueId joined = linear(g, x, w.in);                  // [n_tokens, 2 * n_inner]
  const ValueId gate = g.view_columns(joined, inner, inner);  // [n_tokens, n_inner]
  x = g.short_conv(g.view_columns(joined, 0, inner), *w.conv, w.conv_bias, {.silu = true}, state);
  const ValueId parts = linear(g, x, w.x);  // [n_tokens, rank + 2 * n_state]
  ValueId dt = g.view_columns(parts, 0, rank), b = g.view_columns(parts, rank, n);
  ValueId c = g.view_columns(parts, rank + n, n);
  if (norms) {
    dt = g.rms_norm(dt, w.dt_norm, config.norm_eps);
    b = g.rms_norm(b, w.b_norm, config.norm_eps);
    c = g.rms_norm(c, w.c_norm, config.norm_eps);
  }
  dt = linear(g, dt, w.dt);  // [n_tokens, n_inner]
  const CacheDesc rest = after(state, conv_state_values(ssm.conv_width, inner));
  // Every channel is a separate head with its own time step.
  const ValueId y = g.selective_scan({split(g, x, inner), dt, split(g, b, 1), split(g, c, 1)}, *w.a, w.d,
                                     rest);  // [n_tokens, n_inner]
  return g.gated_activation(gate, y, UnaryKind::kSilu);
}

void check_mamba2_sizes(const ModelConfig& config) {
  const SsmConfig& ssm = config.ssm;
  if (ssm.n_inner % ssm.n_head == 0 && ssm.n_inner % ssm.n_group == 0 && ssm.n_head % ssm.n_group == 0) return;
  reject_value(concat(config.architecture, ".ssm.inner_size"),
               concat("a multiple of the ", ssm.n_head, " heads, which are a multiple of the ", ssm.n_group, " groups"),
               ssm.n_inner);
}

int64_t mamba2_state_values(const SsmConfig& ssm) {
  return conv_state_values(ssm.conv_width, mamba2_conv_channels(ssm)) + int64_t{ssm.n_inner} * ssm.n_state;
}

Mamba2Weights declare_mamba2(WeightSet& weights, const ModelConfig& config, int layer) {
  const SsmConfig& ssm = config.ssm;
  const int64_t inner = ssm.n_inner, channels = mamba2_conv_channels(ssm);
  Mamba2Weights w;
  w.in = declare_linear(weights, layer, kMambaRole, "ssm_in", inner + channels + ssm.n_head, config.n_embd);
  w.conv = declare_conv(weights, layer, "ssm_conv1d", channels, ssm.conv_width);
  w.conv_bias = weights.optional(layer, kMambaRole, "ssm_conv1d.bias", {channels});
  w.dt_bias = weights.require(layer, kMambaRole, "ssm_dt.bias", {ssm.n_head});
  w.a = weights.require(layer, kMambaRole, "ssm_a", {ssm.n_head});
  w.d = weights.require(layer, kMambaRole, "ssm_d", {ssm.n_head});
  w.norm = weights.optional(layer, WeightRole::kNorm, "ssm_norm.weight", {inner});
  w.out = declare_linear(weights, layer, kMambaRole, "ssm_out", config.n_embd, inner);
  return w;
}

ValueId mamba2(Graph& g, ValueId x, const Mamba2Weights& w, const ModelConfig& config, const CacheDesc& state) {
  const SsmConfig& ssm = config.ssm;
  const int64_t inner = ssm.n_inner, channels = mamba2_conv_channels(ssm), group = int64_t{ssm.n_group} * ssm.n_state;
  const ValueId joined = linear(g, x, w.in);              // [n_tokens, n_inner + channels + n_head]
  const ValueId gate = g.view_columns(joined, 0, inner);  // [n_tokens, n_inner]
  const ValueId xbc =
      g.short_conv(g.view_columns(joined, inner, channels), *w.conv, w.conv_bias, {.silu = true}, state);
  const ValueId dt = g.add(g.view_columns(joined, inner + channels, ssm.n_head), g.weight(*w.dt_bias));
  const ValueId heads = split(g, g.view_columns(xbc, 0, inner), ssm.n_head);           // [n_tokens, n_head, head_dim]
  const ValueId b = split(g, g.view_columns(xbc, inner, group), ssm.n_group);          // [n_tokens, n_group, n_state]
  const ValueId c = split(g, g.view_columns(xbc, inner + group, group), ssm.n_group);  // [n_tokens, n_group, n_state]
  const CacheDesc rest = after(state, conv_state_values(ssm.conv_width, channels));
  ValueId y = g.selective_scan({heads, dt, b, c}, *w.a, w.d, rest);  // [n_tokens, n_inner]
  y = g.gated_activation(gate, y, UnaryKind::kSilu);
  if (!w.norm) return y;
  y = g.rms_norm(split(g, y, ssm.n_group), nullptr, config.norm_eps);
  return g.mul(g.reshape(y, {g.token_bucket(), inner}), g.weight(*w.norm));
}

}  // namespace infer
