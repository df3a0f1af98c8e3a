#include "src/model/blocks/rwkv.h"

#include "ggml-like/message.h"
#include "src/model/blocks/attention.h"
#include "src/model/blocks/mamba.h"

namespace infer {
namespace {

constexpr float kHeadNormEps = 64e-5f;  // fixed in the models' code

}  // namespace

ModelConfig read_rwkv(ConfigReader& reader, int& head_dim) {
  ModelConfig config = read_sizes_without_attention(reader);
  config.norm_eps = read_layer_norm_eps(reader);
  reader.only("token_shift_count", {2});
  head_dim = reader.count("wkv.head_size", 1, kMaxHeadDim);
  if (config.n_embd % head_dim != 0) {
    reject_value(concat(config.architecture, ".wkv.head_size"), concat("a divisor of ", config.n_embd), head_dim);
  }
  mark_recurrent_layers(config, int64_t{config.n_embd} * (2 + head_dim));
  return config;
}

CacheDesc time_shift_state(const CacheDesc& state) { return state; }

CacheDesc channel_shift_state(const CacheDesc& state, const ModelConfig& config) { return after(state, config.n_embd); }

CacheDesc wkv_state(const CacheDesc& state, const ModelConfig& config) {
  return after(state, 2 * int64_t{config.n_embd});
}

ValueId shift_difference(Graph& g, ValueId x, const CacheDesc& state) {
  return g.add(g.token_shift(x, state), g.scale(x, -1));
}

ValueId mix(Graph& g, ValueId x, ValueId difference, ValueId weight) { return g.add(x, g.mul(difference, weight)); }

LowRankWeights declare_low_rank(WeightSet& weights, int layer, std::string_view name, int64_t n_embd, int rank) {
  const WeightRole role = WeightRole::kRecurrent;
  return {weights.require(layer, role, concat(name, "0.weight"), {n_embd}),
          declare_linear(weights, layer, role, concat(name, "1"), rank, n_embd),
          declare_linear(weights, layer, role, concat(name, "2"), n_embd, rank)};
}

ValueId raise(Graph& g, ValueId low, const LowRankWeights& w) { return g.add(linear(g, low, w.up), g.weight(*w.base)); }

ValueId norm_wkv_heads(Graph& g, ValueId x, int head_dim, const LayerNorm& w) {
  const Shape shape = g.value(x).desc.shape;
  x = g.reshape(g.layer_norm(split_heads(g, x, head_dim), nullptr, nullptr, kHeadNormEps), shape);
  x = g.mul(x, g.weight(*w.weight));
  return w.bias ? g.add(x, g.weight(*w.bias)) : x;
}

}  // namespace infer
