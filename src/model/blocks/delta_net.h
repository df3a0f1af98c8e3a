// Gated delta-net layers (https://arxiv.org/abs/2412.06464).
#pragma once

#include "src/model/blocks/mamba.h"

namespace infer {

struct DeltaNetWeights {
  Linear qkv;                       // [channels, n_embd]: the rows of queries, keys and values
  Linear gate;                      // [n_inner, n_embd]
  const Weight* conv = nullptr;     // [channels, conv_width]
  Linear beta, alpha;               // [n_head, n_embd]
  Linear beta_alpha;                // [2 * n_head, n_embd]: replaces the two if the file joins them
  const Weight* dt_bias = nullptr;  // [n_head]
  const Weight* a = nullptr;        // [n_head]
  const Weight* norm = nullptr;     // [head_dim]
  Linear out;                       // [n_embd, n_inner]
};

// Throws Error(kInvalidFile) if the heads do not divide the channels or are not a multiple of the groups.
void check_delta_net_sizes(const ModelConfig& config);
int64_t delta_net_state_values(const SsmConfig& ssm);
// Reads which layers are delta nets: the file lists them, or says that one layer in N has attention. REQUIRES: `config`
// has its ssm.
void read_delta_net_layers(ConfigReader& reader, ModelConfig& config);
// For files with separate beta and alpha, and for those that join them.
DeltaNetWeights declare_delta_net(WeightSet& weights, const ModelConfig& config, int layer);
DeltaNetWeights declare_delta_net_joined(WeightSet& weights, const ModelConfig& config, int layer);
// x [n_tokens, n_embd] -> [n_tokens, n_inner], before `out`. Keys and queries have n_group heads of n_state dimensions,
// values n_head heads; `params` says which belong together, `gate` is the activation of the output's gate.
ValueId delta_net(Graph& graph, ValueId x, const DeltaNetWeights& w, const ModelConfig& config,
                  const DeltaRuleParams& params, const CacheDesc& state, UnaryKind gate = UnaryKind::kSilu);

// x / sqrt(sum(x^2) + eps) over the last dimension, times `factor`.
ValueId l2_norm(Graph& graph, ValueId x, float eps, float factor = 1);

}  // namespace infer
