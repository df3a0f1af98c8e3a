#include "src/model/blocks/indexer.h"

#include <algorithm>

#include "ggml-like/message.h"
#include "src/model/blocks/attention.h"

namespace infer {
namespace {

constexpr float kLayerNormEps = 1e-6f;  // not in the files

[[noreturn]] void invalid_indexer(const ModelConfig& config, std::string_view key, const std::string& expected,
                                  int found) {
  reject_value(concat(config.architecture, ".attention.", key), expected, found);
}

// x [n_tokens, heads * key_dim] -> [n_tokens, heads, key_dim], normalized and rotated.
ValueId normalized_heads(Graph& graph, ValueId x, const Weight* norm, const ModelConfig& config, ValueId rope_table) {
  const ValueId heads = split_heads(graph, x, config.indexer.key_dim);
  return rope_neox(graph, graph.rms_norm(heads, norm, config.norm_eps), rope_table);
}

}  // namespace

void read_indexer(ConfigReader& reader, ModelConfig& config) {
  IndexerConfig& indexer = config.indexer;
  indexer.n_head = reader.count("attention.indexer.head_count", 1, kMaxHeads);
  indexer.key_dim = reader.count("attention.indexer.key_length", 1, kMaxHeadDim);
  indexer.select.count = reader.count("attention.indexer.top_k", 1, kMaxContext);
  if (config.rope.n_dims > indexer.key_dim) {
    const std::string expected = concat("at least the ", config.rope.n_dims, " rotated dimensions");
    invalid_indexer(config, "indexer.key_length", expected, indexer.key_dim);
  }
}

void read_latent_indexer(ConfigReader& reader, ModelConfig& config) {
  read_indexer(reader, config);
  const LatentConfig& latent = config.latent;
  if (!latent.cached)
    invalid_indexer(config, "key_length_mla", "a width (the cache must hold compressed vectors)", latent.key_dim);
  if (latent.q_rank == 0) invalid_indexer(config, "q_lora_rank", "the width of compressed queries", latent.q_rank);
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
  const ValueId k = normalized_heads(graph, linear(graph, x, w.k), w.k_norm, config, rope_table);
  const ValueId q = normalized_heads(graph, linear(graph, x, w.q), w.q_norm, config, rope_table);
  graph.kv_store(k, kNoValue, index);
  return graph.select_positions(q, kNoValue, index, config.indexer.select);
}

ValueId select_blocks_by_mean(Graph& graph, ValueId x, const NormalizedIndexerWeights& w, const ModelConfig& config,
                              ValueId rope_table, ValueId key_table, const CacheDesc& index, const CacheDesc& state) {
  const ValueId keys = split_heads(graph, linear(graph, x, w.k), config.indexer.key_dim);  // [n_tokens, 1, key_dim]
  // Equal gates, so that each key has the same weight.
  const ValueId mean = graph.gated_pool(keys, graph.scale(keys, 0), nullptr, index.stride, state);
  const ValueId q = normalized_heads(graph, linear(graph, x, w.q), w.q_norm, config, rope_table);
  graph.kv_store(normalized_heads(graph, mean, w.k_norm, config, key_table), kNoValue, index);
  SelectParams select = config.indexer.select;
  select.count = std::max(1, select.count / index.stride);
  select.unfinished = true;
  return graph.select_positions(q, kNoValue, index, select);
}

void read_index_strides(ConfigReader& reader, ModelConfig& config) {
  const std::vector<int> none(static_cast<size_t>(config.n_layer), 0);
  const std::vector<int> strides = reader.counts("attention.compress_ratios", config.n_layer, 0, kBlockTokens, &none);
  for (int i = 0; i < config.n_layer; ++i) {
    LayerConfig& l = config.layers[i];
    if (l.n_kv_head == 0 || strides[i] == 0) continue;
    if (kBlockTokens % strides[i] != 0) {
      invalid_indexer(config, "compress_ratios", concat("0 or a divisor of ", kBlockTokens), strides[i]);
    }
    l.sparse = l.indexed = true;
    l.index_stride = strides[i];
    if (strides[i] > 1) l.state_values = 3 * int64_t{config.indexer.key_dim};
  }
}

void ignore_normalized_indexer(WeightSet& weights, int layer) {
  for (const std::string_view name :
       {"indexer.q_proj.weight", "indexer.k_proj.weight", "indexer.q_norm.weight", "indexer.k_norm.weight"}) {
    weights.ignore(layer, name);
  }
}

}  // namespace infer
