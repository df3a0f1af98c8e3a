// State space layers: Mamba (https://arxiv.org/abs/2312.00752) and Mamba-2 (https://arxiv.org/abs/2405.21060).
#pragma once

#include "src/model/blocks/linear.h"
#include "src/model/config.h"

namespace infer {

// The number of values in the state of a short convolution with `channels`.
int64_t conv_state_values(int conv_width, int64_t channels);
CacheDesc after(const CacheDesc& state, int64_t values);

// NAME.weight [channels, width], in F32, as every implementation of the format requires.
const Weight* declare_conv(WeightSet& weights, int layer, std::string_view name, int64_t channels, int width);

struct MambaWeights {
  Linear in;                          // [2 * n_inner, n_embd]: the rows of x, then those of the gate
  const Weight* conv = nullptr;       // [n_inner, conv_width]
  const Weight* conv_bias = nullptr;  // [n_inner], null if the file has none
  Linear x;                           // [time step rank + 2 * n_state, n_inner]
  const Weight* dt_norm = nullptr;    // [time step rank], null if the file has none
  const Weight* b_norm = nullptr;     // [n_state], null if the file has none
  const Weight* c_norm = nullptr;     // [n_state], null if the file has none
  Linear dt;                          // [n_inner, time step rank]
  const Weight* a = nullptr;          // [n_inner, n_state]
  const Weight* d = nullptr;          // [n_inner]
  Linear out;                         // [n_embd, n_inner]
};

int64_t mamba_state_values(const SsmConfig& ssm);
MambaWeights declare_mamba(WeightSet& weights, const ModelConfig& config, int layer);
// x [n_tokens, n_embd] -> [n_tokens, n_inner], before `out`. If `norms`, time steps, b and c are normalized, with
// weights if the file has them.
ValueId mamba(Graph& graph, ValueId x, const MambaWeights& w, const ModelConfig& config, bool norms,
              const CacheDesc& state);

struct Mamba2Weights {
  Linear in;  // [2 * n_inner + 2 * n_group * n_state + n_head, n_embd]: the rows of gate, x, b, c and time steps
  const Weight* conv = nullptr;       // [n_inner + 2 * n_group * n_state, conv_width]
  const Weight* conv_bias = nullptr;  // [channels], null if the file has none
  const Weight* dt_bias = nullptr;    // [n_head]
  const Weight* a = nullptr;          // [n_head]
  const Weight* d = nullptr;          // [n_head]
  const Weight* norm = nullptr;       // [n_inner], null if the file has none
  Linear out;                         // [n_embd, n_inner]
};

// These throw Error(kInvalidFile) if heads or groups do not divide the channels.
void check_mamba2_sizes(const ModelConfig& config);
int64_t mamba2_state_values(const SsmConfig& ssm);
Mamba2Weights declare_mamba2(WeightSet& weights, const ModelConfig& config, int layer);
// x [n_tokens, n_embd] -> [n_tokens, n_inner], before `out`. If there is a norm, each group is normalized separately.
ValueId mamba2(Graph& graph, ValueId x, const Mamba2Weights& w, const ModelConfig& config, const CacheDesc& state);

}  // namespace infer
