// A weight of a model, and what it is for.
#pragma once

#include <cstdint>

#include "ggml-like/graph.h"

namespace infer {

// Stated where the weight is declared; nothing infers it from a name or a shape. A bias has the role of its matrix.
enum class WeightRole : uint8_t {
  kEmbedding,     // of tokens
  kRope,          // frequency factors of the rotary position embedding
  kNorm,          // of the residual stream and of heads
  kAttention,     // projections to and from heads
  kFeedForward,   // dense
  kRouter,        // scores the experts for a token
  kExpert,        // of all routed experts, the first dimension counts them; a token uses n_expert_used of them
  kSharedExpert,  // of the expert that every token uses, and the gate that weighs it
  kOutput,        // head: hidden state to logits
};

struct ModelWeight : Weight {
  WeightRole role;
};

}  // namespace infer
