#include "src/model/blocks.h"

#include "ggml-like/error.h"

namespace infer {

AttentionWeights declare_attention(WeightSet& weights, const ModelConfig& config, int layer, HeadNorms norms) {
  const LayerConfig& l = config.layers[layer];
  const int64_t d = config.n_embd, q = int64_t{l.n_head} * config.key_dim, k = int64_t{l.n_kv_head} * config.key_dim,
                v = int64_t{l.n_kv_head} * config.value_dim;
  AttentionWeights w;
  w.q = weights.require(layer, "attn_q.weight", {q, d});
  w.k = weights.require(layer, "attn_k.weight", {k, d});
  w.v = weights.require(layer, "attn_v.weight", {v, d});
  w.out = weights.require(layer, "attn_output.weight", {d, int64_t{l.n_head} * config.value_dim});
  w.q_bias = weights.optional(layer, "attn_q.bias", {q});
  w.k_bias = weights.optional(layer, "attn_k.bias", {k});
  w.v_bias = weights.optional(layer, "attn_v.bias", {v});
  w.out_bias = weights.optional(layer, "attn_output.bias", {d});
  if (norms == HeadNorms::kRequired) {
    w.q_norm = weights.require(layer, "attn_q_norm.weight", {config.key_dim});
    w.k_norm = weights.require(layer, "attn_k_norm.weight", {config.key_dim});
  }
  return w;
}

FeedForwardWeights declare_feed_forward(WeightSet& weights, const ModelConfig& config, int layer, Gate gate) {
  const int64_t d = config.n_embd, f = config.layers[layer].n_ff;
  if (f == 0) {
    throw Error(ErrorCode::kInvalidFile, concat("[model] key ", config.architecture,
                                                ".feed_forward_length: expected a number, the key is missing"));
  }
  FeedForwardWeights w;
  if (gate == Gate::kRequired) {
    w.gate = weights.require(layer, "ffn_gate.weight", {f, d});
    w.gate_bias = weights.optional(layer, "ffn_gate.bias", {f});
  }
  w.up = weights.require(layer, "ffn_up.weight", {f, d});
  w.up_bias = weights.optional(layer, "ffn_up.bias", {f});
  w.down = weights.require(layer, "ffn_down.weight", {d, f});
  w.down_bias = weights.optional(layer, "ffn_down.bias", {d});
  return w;
}

ExpertWeights declare_experts(WeightSet& weights, const ModelConfig& config, int layer) {
  if (weights.has(layer, "ffn_gate.0.weight")) {
    throw Error(ErrorCode::kUnsupported,
                concat("[model] tensor ", WeightSet::full_name(layer, "ffn_gate.0.weight"), ": expected one tensor ",
                       WeightSet::full_name(layer, "ffn_gate_exps.weight"),
                       " for all experts, found the old format with one tensor each; convert the model again"));
  }
  const int64_t d = config.n_embd, f = config.n_ff_expert, e = config.n_expert;
  ExpertWeights w;
  w.router = weights.require(layer, "ffn_gate_inp.weight", {e, d});
  w.gate = weights.require(layer, "ffn_gate_exps.weight", {e, f, d});
  w.up = weights.require(layer, "ffn_up_exps.weight", {e, f, d});
  w.down = weights.require(layer, "ffn_down_exps.weight", {e, d, f});
  return w;
}

ValueId attention_heads(Graph& graph, ValueId x, const AttentionWeights& w, const CacheDesc& cache,
                        const AttentionOptions& options) {
  const int64_t rows = graph.value(x).desc.shape[0], n_head = w.q->desc.shape[0] / cache.key_dim;
  ValueId q = graph.reshape(graph.matmul(x, *w.q, w.q_bias), {rows, n_head, cache.key_dim});
  ValueId k = graph.reshape(graph.matmul(x, *w.k, w.k_bias), {rows, cache.n_kv_head, cache.key_dim});
  const ValueId v = graph.reshape(graph.matmul(x, *w.v, w.v_bias), {rows, cache.n_kv_head, cache.value_dim});
  if (w.q_norm) q = graph.rms_norm(q, w.q_norm, options.norm_eps);
  if (w.k_norm) k = graph.rms_norm(k, w.k_norm, options.norm_eps);
  q = graph.rope(q, options.rope_table, options.interleaved);
  k = graph.rope(k, options.rope_table, options.interleaved);
  graph.kv_store(k, v, cache);
  return graph.paged_attention(q, cache, options.params);
}

ValueId feed_forward(Graph& graph, ValueId x, const FeedForwardWeights& w, UnaryKind activation) {
  if (!w.gate) {
    const ValueId up = graph.matmul(x, *w.up, w.up_bias);
    return graph.matmul(graph.unary(up, activation), *w.down, w.down_bias);
  }
  const ValueId gate = graph.matmul(x, *w.gate, w.gate_bias);
  const ValueId up = graph.matmul(x, *w.up, w.up_bias);
  return graph.matmul(graph.gated_activation(gate, up, activation), *w.down, w.down_bias);
}

ValueId experts(Graph& graph, ValueId x, const ExpertWeights& w, const MoeRouteParams& params, UnaryKind activation) {
  const Graph::Route route = graph.moe_route(graph.matmul(x, *w.router), params);
  const ValueId gate = graph.matmul_experts(x, *w.gate, route.ids);
  const ValueId up = graph.matmul_experts(x, *w.up, route.ids);
  const ValueId down = graph.matmul_experts(graph.gated_activation(gate, up, activation), *w.down, route.ids);
  ValueId sum = graph.moe_combine(down, route.weights);
  if (w.shared.up) {
    ValueId shared = feed_forward(graph, x, w.shared, activation);
    if (w.shared_gate) shared = graph.mul(shared, graph.unary(graph.matmul(x, *w.shared_gate), UnaryKind::kSigmoid));
    sum = graph.add(sum, shared);
  }
  return sum;
}

}  // namespace infer
