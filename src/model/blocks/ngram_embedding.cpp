#include "src/model/blocks/ngram_embedding.h"

#include <algorithm>
#include <limits>

#include "ggml-like/message.h"
#include "src/model/blocks/mamba.h"

namespace infer {
namespace {

constexpr WeightRole kNgramRole = WeightRole::kResidual;
constexpr int kLongest = 8;       // maximum n
constexpr int kMostLookups = 64;  // maximum lookups per token
constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max();

}  // namespace

int64_t NgramConfig::conv_values(int64_t channels) const {
  return (conv_width - 1) * std::ssize(tables->multipliers) * channels;
}

int64_t NgramConfig::rows() const {
  int64_t rows = 0;
  for (size_t i = 0; i < tables->sizes.size(); ++i)
    rows = std::max(rows, int64_t{tables->offsets[i]} + tables->sizes[i]);
  return rows;
}

NgramConfig read_ngram_embedding(ConfigReader& reader, const ModelConfig& config) {
  NgramConfig ngrams;
  const std::vector<uint64_t> layers = reader.unsigned_numbers("ple.layers");
  if (layers.empty()) return ngrams;
  const std::string prefix = reader.architecture() + ".ple.";
  if (layers.size() > 1) reject_value(prefix + "layers", "one layer", layers.size());
  if (layers[0] >= static_cast<uint64_t>(config.n_layer)) {
    reject_value(prefix + "layers", concat("a number below ", config.n_layer), layers[0]);
  }
  ngrams.layer = static_cast<int>(layers[0]);
  ngrams.dim = reader.count("embedding_length_per_layer_input", 1, kMaxWidth);
  ngrams.conv_width = reader.count("ple.conv_kernel", 2, kMaxConvWidth);
  reader.ignore("ple.image_token_id");
  const int longest = reader.count("ple.ngram_size", 2, kLongest);
  NgramTables tables;
  tables.per_length = reader.count("ple.heads_per_ngram", 1, kMostLookups / (longest - 1));
  tables.end_token = reader.count("ple.eos_token_id", 0, kMaxVocabulary - 1);
  // The first `n` numbers of an array.
  const auto numbers = [&](std::string_view key, int64_t n) {
    std::vector<uint64_t> array = reader.unsigned_numbers(key);
    if (std::ssize(array) < n)
      reject_value(reader.architecture() + "." + std::string(key), concat(n, " numbers"), array.size());
    array.resize(static_cast<size_t>(n));
    return array;
  };
  tables.multipliers = numbers("ple.layer_multipliers", longest);
  const std::vector<uint64_t> sizes = numbers("ple.head_vocab_sizes", tables.lookups());
  const std::vector<uint64_t> offsets = numbers("ple.head_offsets", tables.lookups());
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 1 || sizes[i] > kMostRows || offsets[i] > kMostRows - sizes[i]) {
      reject_value(prefix + "head_vocab_sizes", concat("sizes and offsets of at most ", kMostRows, " rows"),
                   concat(sizes[i], " rows at ", offsets[i]));
    }
    tables.sizes.push_back(static_cast<uint32_t>(sizes[i]));
    tables.offsets.push_back(static_cast<uint32_t>(offsets[i]));
  }
  ngrams.tables = std::make_shared<const NgramTables>(std::move(tables));
  return ngrams;
}

NgramWeights declare_ngram_embedding(WeightSet& weights, const ModelConfig& config, const NgramConfig& ngrams,
                                     int64_t n_stream) {
  const int layer = ngrams.layer;
  const int64_t all = n_stream * config.n_embd, width = ngrams.tables->lookups() * ngrams.dim;
  const std::string_view table = "per_layer_token_embd.weight";
  const int64_t rows = std::max(ngrams.rows(), weights.rows(kInputLayer, table));  // files may have more rows
  return {
      .table = weights.require(kInputLayer, WeightRole::kEmbedding, table, {rows, ngrams.dim}),
      .key = declare_linear(weights, layer, kNgramRole, "ple_key", all, width),
      .value = declare_linear(weights, layer, kNgramRole, "ple_value", config.n_embd, width),
      .key_norm = declare_norm(weights, layer, "ple_norm_key", all),
      .query_norm = declare_norm(weights, layer, "ple_norm_query", all),
      .conv_norm = declare_norm(weights, layer, "ple_norm_conv", all),
      .conv = declare_conv(weights, layer, "ple_conv1d", all, ngrams.conv_width),
  };
}

ValueId add_ngram_embedding(Graph& graph, ValueId streams, const NgramWeights& w, const NgramConfig& ngrams, float eps,
                            const CacheDesc& ids, const CacheDesc& state) {
  const Shape shape = graph.value(streams).desc.shape;  // [n_tokens, n_stream, n_embd]
  const ValueId x = graph.ngram_embed(*w.table, ngrams.tables, ids);
  const ValueId keys = norm_streams(graph, graph.reshape(linear(graph, x, w.key), shape), w.key_norm, eps);
  const ValueId fit =
      graph.agreement(keys, norm_streams(graph, streams, w.query_norm, eps));  // [n_tokens, n_stream, 1]
  const ValueId value = graph.reshape(linear(graph, x, w.value), {shape[0], 1, shape[2]});
  const ValueId gated = graph.mix_streams(value, fit);  // as streams
  const ValueId normalized =
      graph.reshape(norm_streams(graph, gated, w.conv_norm, eps), {shape[0], shape.row_elements()});
  const ShortConvParams conv{.silu = true, .dilation = static_cast<int>(ngrams.tables->multipliers.size())};
  const ValueId convolved = graph.reshape(graph.short_conv(normalized, *w.conv, nullptr, conv, state), shape);
  return graph.add(streams, graph.add(gated, convolved));
}

}  // namespace infer
