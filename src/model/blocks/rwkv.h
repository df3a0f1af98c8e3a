// The common parts of RWKV-6 (https://arxiv.org/abs/2404.05892) and RWKV-7 (https://arxiv.org/abs/2503.14456).
#pragma once

#include "src/model/blocks/linear.h"
#include "src/model/config.h"

namespace infer {

// Reads the sizes of a model whose layer state is two shifted tokens and wkv; `head_dim` is that of wkv.
ModelConfig read_rwkv(ConfigReader& reader, int& head_dim);

// The parts of a layer's state: the previous token for the time mix and for the channel mix, and wkv.
CacheDesc time_shift_state(const CacheDesc& state);
CacheDesc channel_shift_state(const CacheDesc& state, const ModelConfig& config);
CacheDesc wkv_state(const CacheDesc& state, const ModelConfig& config);

// x [n_tokens, n_embd] -> the same shape: the previous token's row minus x.
ValueId shift_difference(Graph& graph, ValueId x, const CacheDesc& state);
// x + difference * weight; weight is [n_embd] or has the shape of x.
ValueId mix(Graph& graph, ValueId x, ValueId difference, ValueId weight);

// A low-rank projection: a vector per token through a bottleneck.
struct LowRankWeights {
  const Weight* base = nullptr;  // [n_embd]
  Linear down;                   // [rank, n_embd]
  Linear up;                     // [n_embd, rank]
};

// Declares NAME0.weight, NAME1 and NAME2.
LowRankWeights declare_low_rank(WeightSet& weights, int layer, std::string_view name, int64_t n_embd, int rank);
// low [n_tokens, rank] -> [n_tokens, n_embd]: base + up(low).
ValueId raise(Graph& graph, ValueId low, const LowRankWeights& w);

// x [n_tokens, n_embd] -> the same shape: normalizes each head separately, then applies weight and bias.
ValueId norm_wkv_heads(Graph& graph, ValueId x, int head_dim, const LayerNorm& w);

}  // namespace infer
