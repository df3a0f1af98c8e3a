#include "src/model/blocks/attention.h"

#include <cmath>

namespace infer {

AttentionWeights declare_attention(WeightSet& weights, const ModelConfig& config, int layer) {
  const WeightRole role = WeightRole::kAttention;
  const LayerConfig& l = config.layers[layer];
  const int64_t d = config.n_embd, key_dim = config.key_dim, value_dim = config.value_dim;
  AttentionWeights w;
  w.q = declare_linear(weights, layer, role, "attn_q", l.n_head * key_dim, d);
  w.k = declare_linear(weights, layer, role, "attn_k", l.n_kv_head * key_dim, d);
  w.v = declare_linear(weights, layer, role, "attn_v", l.n_kv_head * value_dim, d);
  w.out = declare_linear(weights, layer, role, "attn_output", d, l.n_head * value_dim);
  weights.ignore(layer, "attn_rot_embd.weight");  // a table in some old files; the rotation is computed instead
  return w;
}

ValueId split_heads(Graph& graph, ValueId x, int64_t head_dim) {
  const Shape& shape = graph.value(x).desc.shape;
  return graph.reshape(x, {shape[0], shape[1] / head_dim, head_dim});
}

ValueId rope_interleaved(Graph& graph, ValueId x, ValueId table) { return graph.rope(x, table, /*interleaved=*/true); }

ValueId rope_neox(Graph& graph, ValueId x, ValueId table) { return graph.rope(x, table, /*interleaved=*/false); }

float attention_scale(const ModelConfig& config) { return 1 / std::sqrt(static_cast<float>(config.key_dim)); }

ValueId attention(Graph& graph, ValueId q, ValueId k, ValueId v, const CacheDesc& cache,
                  const AttentionParams& params) {
  graph.kv_store(k, v, cache);
  return graph.paged_attention(q, cache, params);
}

}  // namespace infer
