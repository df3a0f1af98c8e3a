#include "src/model/blocks/kimi_delta.h"

#include <cmath>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "src/model/blocks/delta_net.h"

namespace infer {
namespace {

constexpr WeightRole kKimiDeltaRole = WeightRole::kRecurrent;

struct Projection {
  Linear first, up;  // `up` is empty without a bottleneck
};

// Declares the matrix `full` [n_inner, n_embd], or NAME_a, optionally followed by NAME_b.
Projection declare_projection(WeightSet& weights, const ModelConfig& config, int layer, const std::string& name) {
  const int64_t inner = config.ssm.n_inner, rank = config.ssm.n_state, d = config.n_embd;
  if (weights.has(layer, name + ".weight")) return {declare_linear(weights, layer, kKimiDeltaRole, name, inner, d), {}};
  if (!weights.has(layer, name + "_b.weight")) {
    return {declare_linear(weights, layer, kKimiDeltaRole, name + "_a", inner, d), {}};
  }
  return {declare_linear(weights, layer, kKimiDeltaRole, name + "_a", rank, d),
          declare_linear(weights, layer, kKimiDeltaRole, name + "_b", inner, rank)};
}

ValueId project(Graph& graph, ValueId x, const Linear& first, const Linear& up) {
  const ValueId y = linear(graph, x, first);
  return up.weight ? linear(graph, y, up) : y;
}

struct Projected {
  ValueId q, k, v;  // [n_tokens, n_inner]
};

Projected project_all(Graph& graph, ValueId x, const KimiDeltaWeights& w, int64_t inner) {
  if (!w.qkv.weight) return {linear(graph, x, w.q), linear(graph, x, w.k), linear(graph, x, w.v)};
  const ValueId all = linear(graph, x, w.qkv);
  return {graph.view_columns(all, 0, inner), graph.view_columns(all, inner, inner),
          graph.view_columns(all, 2 * inner, inner)};
}

}  // namespace

void read_kimi_delta(ConfigReader& reader, ModelConfig& config) {
  SsmConfig& ssm = config.ssm;
  ssm.conv_width = reader.count("ssm.conv_kernel", 2, kMaxConvWidth);
  ssm.n_state = reader.count("kda.head_dim", 1, kMaxHeadDim);
  ssm.n_head = ssm.n_group = config.layers[0].n_head;
  for (const LayerConfig& l : config.layers) {
    if (l.n_head == ssm.n_head) continue;
    throw Error(ErrorCode::kUnsupported,
                expected_found("model", concat("key ", config.architecture, ".attention.head_count"),
                               concat(ssm.n_head, " in all layers"), l.n_head));
  }
  const int64_t inner = int64_t{ssm.n_head} * ssm.n_state;
  if (inner > kMaxWidth) {
    reject_value(concat(config.architecture, ".kda.head_dim"), concat("heads of at most ", kMaxWidth, " values"),
                 inner);
  }
  ssm.n_inner = static_cast<int>(inner);
  mark_recurrent_layers(config, 3 * conv_state_values(ssm.conv_width, inner) + inner * ssm.n_state);
}

KimiDeltaWeights declare_kimi_delta(WeightSet& weights, const ModelConfig& config, int layer) {
  const SsmConfig& ssm = config.ssm;
  const int64_t inner = ssm.n_inner, d = config.n_embd;
  KimiDeltaWeights w;
  if (weights.has(layer, "attn_qkv.weight")) {
    w.qkv = declare_linear(weights, layer, WeightRole::kAttention, "attn_qkv", 3 * inner, d);
  } else {
    w.q = declare_linear(weights, layer, WeightRole::kAttention, "attn_q", inner, d);
    w.k = declare_linear(weights, layer, WeightRole::kAttention, "attn_k", inner, d);
    w.v = declare_linear(weights, layer, WeightRole::kAttention, "attn_v", inner, d);
  }
  w.q_conv = declare_conv(weights, layer, "ssm_conv1d_q", inner, ssm.conv_width);
  w.k_conv = declare_conv(weights, layer, "ssm_conv1d_k", inner, ssm.conv_width);
  w.v_conv = declare_conv(weights, layer, "ssm_conv1d_v", inner, ssm.conv_width);
  const Projection decay = declare_projection(weights, config, layer, "ssm_f");
  const Projection gate = declare_projection(weights, config, layer, "ssm_g");
  w.decay = decay.first;
  w.decay_up = decay.up;
  w.gate = gate.first;
  w.gate_up = gate.up;
  w.dt_bias = weights.require(layer, kKimiDeltaRole, "ssm_dt.bias", {inner});
  w.a = weights.require(layer, kKimiDeltaRole, "ssm_a", {ssm.n_head});
  w.beta = declare_linear(weights, layer, kKimiDeltaRole, "ssm_beta", ssm.n_head, d);
  w.norm = declare_norm(weights, layer, "ssm_norm", ssm.n_state);
  w.out = declare_linear(weights, layer, WeightRole::kAttention, "attn_output", d, inner);
  return w;
}

ValueId kimi_delta(Graph& graph, ValueId x, const KimiDeltaWeights& w, const ModelConfig& config, DecayForm form,
                   float lowest_decay, const CacheDesc& state) {
  const SsmConfig& ssm = config.ssm;
  const int64_t n = ssm.n_state, conv_values = conv_state_values(ssm.conv_width, ssm.n_inner);
  const Projected in = project_all(graph, x, w, ssm.n_inner);
  CacheDesc part = state;  // the convolutions of queries, keys and values, then the delta rule
  const auto convolved = [&](ValueId projected, const Weight& conv) {
    const ValueId y = graph.short_conv(projected, conv, nullptr, {.silu = true}, part);
    part = after(part, conv_values);
    return split_heads(graph, y, n);  // [n_tokens, n_head, head_dim]
  };
  const ValueId raw_q = convolved(in.q, *w.q_conv), raw_k = convolved(in.k, *w.k_conv);
  const ValueId v = convolved(in.v, *w.v_conv);
  const ValueId q = l2_norm(graph, raw_q, config.norm_eps, 1 / std::sqrt(static_cast<float>(n)));
  const ValueId k = l2_norm(graph, raw_k, config.norm_eps);
  ValueId dt = graph.add(project(graph, x, w.decay, w.decay_up), graph.weight(*w.dt_bias));  // [n_tokens, n_inner]
  if (form == DecayForm::kBoundedNegated) dt = graph.scale(dt, -1);
  const DeltaRuleParams params = {.lowest_decay = form == DecayForm::kSoftplus ? 0 : lowest_decay};
  const ValueId beta = graph.unary(linear(graph, x, w.beta), UnaryKind::kSigmoid);  // [n_tokens, n_head]
  ValueId y = graph.delta_rule({q, k, v, split_heads(graph, dt, n), beta}, *w.a, params, part);
  y = graph.rms_norm(split_heads(graph, y, n), w.norm, config.norm_eps);
  return graph.gated_activation(project(graph, x, w.gate, w.gate_up),
                                graph.reshape(y, {graph.token_bucket(), ssm.n_inner}), UnaryKind::kSigmoid);
}

}  // namespace infer
