#include "src/model/blocks/indexer.h"

#include "ggml-like/message.h"
#include "src/model/blocks/attention.h"

namespace infer {
namespace {

constexpr float kLayerNormEps = 1e-6f;  // files do not say

[[noreturn]] void invalid(const ModelConfig& config, std::string_view key, const std::string& expected, int found) {
  reject_value(concat(config.architecture, ".attention.", key), expected, found);
}

}  // namespace

void read_indexer(ConfigReader& reader, ModelConfig& config) {
  IndexerConfig& indexer = config.indexer;
  indexer.n_head = reader.count("attention.indexer.head_count", 1, kMaxHeads);
  indexer.key_dim = reader.count("attention.indexer.key_length", 1, kMaxHeadDim);
  indexer.select.count = reader.count("attention.indexer.top_k", 1, kMaxContext);
  if (config.rope.n_dims > indexer.key_dim) {
    const std::string expected = concat("at least the ", config.rope.n_dims, " rotated dimensions");
    invalid(config, "indexer.key_length", expected, indexer.key_dim);
  }
}

void read_latent_indexer(ConfigReader& reader, ModelConfig& config) {
  read_indexer(reader, config);
  const LatentConfig& latent = config.latent;
  if (!latent.cached)
    invalid(config, "key_length_mla", "a width, as a cache of compressed vectors has", latent.key_dim);
  if (latent.q_rank == 0) invalid(config, "q_lora_rank", "the width of compressed queries", latent.q_rank);
  for (LayerConfig& l : config.layers) l.sparse = l.indexed = true;
}

IndexerWeights declare_indexer(WeightSet& weights, const ModelConfig& config, int layer) {
  const WeightRole role = WeightRole::kAttention;
  const IndexerConfig& indexer = config.indexer;
  const int64_t heads = indexer.n_head, key_dim = indexer.key_dim;
  return {
      .q = declare_linear(weights, layer, role, "indexer.attn_q_b", heads * key_dim, config.latent.q_rank),
      .k = declare_linear(weights, layer, role, "indexer.attn_k", key_dim, config.n_embd),
      .k_norm = declare_layer_norm(weights, layer, "indexer.k_norm", key_dim),
      .head_weights = declare_linear(weights, layer, role, "indexer.proj", heads, config.n_embd),
  };
}

void ignore_indexer(WeightSet& weights, int layer) {
  for (const std::string_view name : {"indexer.attn_q_b.weight", "indexer.attn_k.weight", "indexer.k_norm.weight",
                                      "indexer.k_norm.bias", "indexer.proj.weight"}) {
    weights.ignore(layer, name);
  }
}

ValueId select_positions(Graph& graph, ValueId x, ValueId queries, const IndexerWeights& w, const ModelConfig& config,
                         ValueId rope_table, bool interleaved, const CacheDesc& index) {
  const int64_t key_dim = config.indexer.key_dim;
  const ValueId q = split_heads(graph, linear(graph, queries, w.q), key_dim);  // [n_tokens, n_head, key_dim]
  const ValueId k = split_heads(graph, layer_norm(graph, linear(graph, x, w.k), w.k_norm, kLayerNormEps), key_dim);
  graph.kv_store(graph.rope(k, rope_table, interleaved), kNoValue, index);
  const ValueId weights = linear(graph, x, w.head_weights);  // [n_tokens, n_head]
  return graph.select_positions(graph.rope(q, rope_table, interleaved), weights, index, config.indexer.select);
}

NormalizedIndexerWeights declare_normalized_indexer(WeightSet& weights, const ModelConfig& config, int layer) {
  const WeightRole role = WeightRole::kAttention;
  const int64_t heads = config.indexer.n_head, key_dim = config.indexer.key_dim;
  return {
      .q = declare_linear(weights, layer, role, "indexer.q_proj", heads * key_dim, config.n_embd),
      .k = declare_linear(weights, layer, role, "indexer.k_proj", key_dim, config.n_embd),
      .q_norm = declare_norm(weights, layer, "indexer.q_norm", key_dim),
      .k_norm = declare_norm(weights, layer, "indexer.k_norm", key_dim),
  };
}

ValueId select_positions(Graph& graph, ValueId x, const NormalizedIndexerWeights& w, const ModelConfig& config,
                         ValueId rope_table, const CacheDesc& index) {
  const auto rotated = [&](const Linear& projection, const Weight* norm) {
    const ValueId heads = split_heads(graph, linear(graph, x, projection), config.indexer.key_dim);
    return rope_neox(graph, graph.rms_norm(heads, norm, config.norm_eps), rope_table);
  };
  graph.kv_store(rotated(w.k, w.k_norm), kNoValue, index);
  return graph.select_positions(rotated(w.q, w.q_norm), kNoValue, index, config.indexer.select);
}

}  // namespace infer
