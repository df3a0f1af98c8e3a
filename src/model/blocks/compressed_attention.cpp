#include "src/model/blocks/compressed_attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "src/model/blocks/attention.h"
#include "src/model/blocks/indexer.h"

namespace infer {
namespace {

// The strides that files use. Only with the short one do pools overlap and does the layer have an indexer.
constexpr int kShort = 4, kLong = 128;

int parts_of(int stride) { return stride == kShort ? 2 : 1; }

// The number of F32 values in the state of a layer with this stride.
int64_t state_values(const ModelConfig& config, int stride) {
  if (stride == 0) return 0;
  const int64_t dim = config.key_dim + (stride == kShort ? config.indexer.key_dim : 0);
  return 3 * parts_of(stride) * dim;
}

CompressorWeights declare_compressor(WeightSet& weights, const ModelConfig& config, int layer, std::string_view name,
                                     int64_t dim) {
  const WeightRole role = WeightRole::kAttention;
  const int stride = config.layers[layer].compress;
  const int64_t width = parts_of(stride) * dim;
  return {
      .x = declare_linear(weights, layer, role, concat(name, "_kv"), width, config.n_embd),
      .gate = declare_linear(weights, layer, role, concat(name, "_gate"), width, config.n_embd),
      .offsets = weights.require(layer, role, concat(name, "_ape.weight"), {stride, width}),
      .norm = declare_norm(weights, layer, concat(name, "_norm"), dim),
  };
}

// Rotates the last dimensions of each head.
ValueId rotate_last(Graph& graph, ValueId x, ValueId table) {
  const int64_t dim = graph.value(x).desc.shape[2], n_rot = 2 * graph.value(table).desc.shape[1];
  if (dim == n_rot) return rope_interleaved(graph, x, table);
  const ValueId rotated = rope_interleaved(graph, graph.slice_columns(x, dim - n_rot, n_rot), table);
  return graph.concat_columns(graph.slice_columns(x, 0, dim - n_rot), rotated);
}

// Pools x [n_tokens, n_embd] and stores the completed entries.
void store_compressed(Graph& graph, ValueId x, const CompressorWeights& w, const ModelConfig& config, ValueId table,
                      const CacheDesc& cache, const CacheDesc& state) {
  const Shape shape{graph.value(x).desc.shape[0], parts_of(cache.stride), cache.key_dim};
  const ValueId rows = graph.reshape(linear(graph, x, w.x), shape);
  const ValueId gates = graph.reshape(linear(graph, x, w.gate), shape);
  const ValueId pooled = graph.gated_pool(rows, gates, w.offsets, cache.stride, state);  // [n_tokens, key_dim]
  const ValueId entry = split_heads(graph, graph.rms_norm(pooled, w.norm, config.norm_eps), cache.key_dim);
  graph.kv_store(rotate_last(graph, entry, table), kNoValue, cache);
}

// The indices of the entries that the indexer selects, [n_tokens, 1, select.count].
ValueId select_entries(Graph& graph, ValueId x, ValueId queries, const CompressedAttentionWeights& w,
                       const ModelConfig& config, ValueId table, const CacheDesc& index) {
  const ValueId q = split_heads(graph, linear(graph, queries, w.index_q), config.indexer.key_dim);
  const ValueId weights = linear(graph, x, w.index_weights);  // [n_tokens, n_head]
  return graph.select_positions(rotate_last(graph, q, table), weights, index, config.indexer.select);
}

// Merges attention over two parts of a context -> [n_tokens, n_head * value_dim].
ValueId combine(Graph& graph, const Graph::PartialAttention& a, const Graph::PartialAttention& b, int64_t value_dim) {
  const Shape shape = graph.value(a.out).desc.shape, sums = graph.value(a.log_sum).desc.shape;
  const ValueId difference = graph.add(a.log_sum, graph.scale(b.log_sum, -1));  // [n_tokens, n_head]
  const auto weighted = [&](ValueId out, ValueId advantage) {
    const ValueId weight = graph.reshape(graph.unary(advantage, UnaryKind::kSigmoid), {sums[0], sums[1], 1});
    return graph.mul(split_heads(graph, out, value_dim), weight);
  };
  const ValueId sum = graph.add(weighted(a.out, difference), weighted(b.out, graph.scale(difference, -1)));
  return graph.reshape(sum, shape);
}

}  // namespace

void read_compressed_attention(ConfigReader& reader, ModelConfig& config) {
  config.latent.cached = true;
  config.latent.q_rank = reader.count("attention.q_lora_rank", 1, kMaxWidth);
  reader.only("attention.head_count_kv", {1});
  reader.only("attention.value_length", {static_cast<double>(config.key_dim)});
  read_indexer(reader, config);
  config.rope_window = without_scaling(config.rope);
  config.rope.freq_base = static_cast<float>(reader.number("attention.compress_rope_freq_base", 1.001, 1e15));
  // Cancels YaRN's magnitude: rotated values keep their length.
  config.rope.attn_factor = config.rope.ext_factor == 0 ? 1 : 1 / (1 - 0.1f * std::log(config.rope.freq_scale));
  const int window = reader.count("attention.sliding_window", 1, kMaxContext);
  const std::vector<int> strides = reader.counts_of_first("attention.compress_ratios", config.n_layer, 0, kLong);
  for (int i = 0; i < config.n_layer; ++i) {
    constexpr std::array kKnown = {0, kShort, kLong};
    if (std::find(kKnown.begin(), kKnown.end(), strides[i]) == kKnown.end()) {
      throw Error(ErrorCode::kUnsupported,
                  expected_found("model", concat("key ", config.architecture, ".attention.compress_ratios"),
                                 concat("0, ", kShort, " or ", kLong), strides[i]));
    }
    LayerConfig& l = config.layers[i];
    l.window = window;
    l.compress = strides[i];
    l.sparse = l.compress > 0;
    l.indexed = l.compress == kShort;
    if (l.indexed) l.index_stride = kShort;
    l.state_values = state_values(config, l.compress);
  }
}

std::vector<CacheGroup> compressed_cache_groups(const ModelConfig& config) {
  CacheGroup window, compressed, states;
  window.kind = CacheKind::kWindow;
  window.window = config.layers[0].window;
  compressed.kind = CacheKind::kLatent;
  states.kind = CacheKind::kState;
  for (int i = 0; i < config.n_layer; ++i) {
    window.layers.push_back(i);
    if (config.layers[i].compress == 0) continue;
    compressed.layers.push_back(i);
    states.layers.push_back(i);
  }
  if (compressed.layers.empty()) return {window};
  return {window, compressed, states};
}

CompressedTables compressed_tables(Graph& graph, RopeTableParams rope, int stride) {
  CompressedTables tables;
  tables.forward = graph.rope_table(rope);
  rope.inverse = true;
  tables.backward = graph.rope_table(rope);
  rope.inverse = false;
  rope.period = stride;
  if (stride > 1) tables.entries = graph.rope_table(rope);
  return tables;
}

CompressedCaches compressed_caches(const Model& model, int layer, CacheTypes types) {
  const LayerConfig& l = model.config().layers[layer];
  CompressedCaches caches;
  caches.window = model.cache_desc(layer, types);
  if (l.compress > 0) caches.compressed = model.compressed_desc(layer, types);
  if (l.compress > 0) caches.state = model.state_desc(layer);
  if (l.indexed) caches.index = model.index_desc(layer, types);
  return caches;
}

CompressedAttentionWeights declare_compressed_attention(WeightSet& weights, const ModelConfig& config, int layer,
                                                        int64_t n_groups, int64_t out_rank) {
  const WeightRole role = WeightRole::kAttention;
  const LayerConfig& l = config.layers[layer];
  const int64_t d = config.n_embd, rank = config.latent.q_rank, width = int64_t{l.n_head} * config.key_dim;
  CompressedAttentionWeights w;
  w.sinks = weights.require(layer, role, "attn_sinks.weight", {l.n_head});
  w.q_a = declare_linear(weights, layer, role, "attn_q_a", rank, d);
  w.q_norm = declare_norm(weights, layer, "attn_q_a_norm", rank);
  w.q_b = declare_linear(weights, layer, role, "attn_q_b", width, rank);
  w.kv = declare_linear(weights, layer, role, "attn_kv", config.key_dim, d);
  w.kv_norm = declare_norm(weights, layer, "attn_kv_a_norm", config.key_dim);
  if (l.compress > 0) w.compressor = declare_compressor(weights, config, layer, "attn_compressor", config.key_dim);
  if (l.indexed) {
    const IndexerConfig& indexer = config.indexer;
    w.index_q = declare_linear(weights, layer, role, "indexer.attn_q_b", indexer.n_head * indexer.key_dim, rank);
    w.index_weights = declare_linear(weights, layer, role, "indexer.proj", indexer.n_head, d);
    w.index_compressor = declare_compressor(weights, config, layer, "indexer_compressor", indexer.key_dim);
  }
  w.out_a = weights.require(layer, role, "attn_output_a.weight", {n_groups, out_rank, width / n_groups});
  w.out_b = declare_linear(weights, layer, role, "attn_output_b", d, n_groups * out_rank);
  return w;
}

ValueId compressed_attention(Graph& graph, ValueId x, const CompressedAttentionWeights& w, const ModelConfig& config,
                             int layer, const CompressedTables& tables, const CompressedCaches& caches) {
  const LayerConfig& l = config.layers[layer];
  const float scale = attention_scale(config);
  const ValueId queries = graph.rms_norm(linear(graph, x, w.q_a), w.q_norm, config.norm_eps);  // [n_tokens, q_rank]
  const ValueId heads = split_heads(graph, linear(graph, queries, w.q_b), config.key_dim);
  const ValueId q = rotate_last(graph, graph.rms_norm(heads, nullptr, config.norm_eps), tables.forward);
  const ValueId kv =
      split_heads(graph, graph.rms_norm(linear(graph, x, w.kv), w.kv_norm, config.norm_eps), config.key_dim);
  graph.kv_store(rotate_last(graph, kv, tables.forward), kNoValue, caches.window);
  ValueId out;  // [n_tokens, n_head * key_dim]
  if (l.compress == 0) {
    out = graph.paged_attention(q, caches.window, {.scale = scale, .window = l.window}, w.sinks);
  } else {
    store_compressed(graph, x, w.compressor, config, tables.entries, caches.compressed, caches.state);
    ValueId selected = kNoValue;
    if (l.indexed) {
      CacheDesc state = caches.state;
      state.first_value = 3 * parts_of(l.compress) * config.key_dim;
      store_compressed(graph, x, w.index_compressor, config, tables.entries, caches.index, state);
      selected = select_entries(graph, x, queries, w, config, tables.forward, caches.index);
    }
    const Graph::PartialAttention recent =
        graph.sparse_attention(q, kNoValue, caches.window, {.scale = scale, .window = l.window}, w.sinks);
    out = combine(graph, recent, graph.sparse_attention(q, selected, caches.compressed, {.scale = scale}),
                  config.key_dim);
  }
  const Shape shape = graph.value(out).desc.shape;
  return graph.reshape(rotate_last(graph, split_heads(graph, out, config.key_dim), tables.backward), shape);
}

ValueId grouped_output(Graph& graph, ValueId heads, const CompressedAttentionWeights& w) {
  const int64_t rows = graph.value(heads).desc.shape[0], groups = w.out_a->desc.shape[0];
  const ValueId grouped = graph.reshape(heads, {rows, groups, w.out_a->desc.shape[2]});
  const ValueId narrow = graph.matmul_experts(grouped, *w.out_a, kNoValue);  // [n_tokens, n_groups, out_rank]
  return linear(graph, graph.reshape(narrow, {rows, groups * w.out_a->desc.shape[1]}), w.out_b);
}

}  // namespace infer
