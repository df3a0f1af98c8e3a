// Kimi delta attention (https://arxiv.org/abs/2510.26692): a delta rule with a decay per channel, separate convolutions
// of queries, keys and values, and a sigmoid gate.
#pragma once

#include "src/model/blocks/attention.h"
#include "src/model/blocks/mamba.h"

namespace infer {

struct KimiDeltaWeights {
  Linear q, k, v;  // [n_inner, n_embd]
  Linear qkv;      // [3 * n_inner, n_embd]: replaces the three if the file joins them
  const Weight *q_conv = nullptr, *k_conv = nullptr, *v_conv = nullptr;  // [n_inner, conv_width]
  Linear decay, decay_up;  // [n_inner, n_embd]; or with a bottleneck, [head_dim, n_embd] and [n_inner, head_dim]
  const Weight* dt_bias = nullptr;  // [n_inner]
  const Weight* a = nullptr;        // [n_head]
  Linear beta;                      // [n_head, n_embd]
  Linear gate, gate_up;             // like decay and decay_up
  const Weight* norm = nullptr;     // [head_dim]
  Linear out;                       // [n_embd, n_inner]
};

// The form of the decay. kBounded: the logarithm of the decay is lowest_decay sigmoid(a dt). kBoundedNegated: the same,
// but the file stores -a.
enum class DecayForm : uint8_t { kSoftplus, kBounded, kBoundedNegated };

// Sets config.ssm from ssm.conv_kernel and kda.head_dim, and marks the layers without keys and values as recurrent.
// REQUIRES: `config` has its sizes, with the same number of heads in all layers.
void read_kimi_delta(ConfigReader& reader, ModelConfig& config);

KimiDeltaWeights declare_kimi_delta(WeightSet& weights, const ModelConfig& config, int layer);
// x [n_tokens, n_embd] -> [n_tokens, n_inner], before `out`. `lowest_decay` is unused with kSoftplus.
ValueId kimi_delta(Graph& graph, ValueId x, const KimiDeltaWeights& w, const ModelConfig& config, DecayForm form,
                   float lowest_decay, const CacheDesc& state);

}  // namespace infer
