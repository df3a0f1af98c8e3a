// A weight of a model, and its role.
#pragma once

#include <cstdint>

#include "ggml-like/graph.h"

namespace infer {

// Set where the weight is declared, never inferred from a name or shape. A bias has the role of its matrix.
enum class WeightRole : uint8_t {
  kEmbedding,     // token embedding, and other tables looked up by token or position
  kRope,          // frequency factors of the rotary position embedding
  kNorm,          // of the residual stream or of heads
  kAttention,     // projections to and from heads
  kRecurrent,     // projections to and from a recurrent state, and its parameters
  kResidual,      // mixes the residual streams, or adds to them outside attention and feed-forward
  kFeedForward,   // dense
  kRouter,        // scores the experts for a token
  kExpert,        // all routed experts, counted by the first dimension; a token uses routing.n_used of them
  kSharedExpert,  // the expert that every token uses, and its gate
  kOutput,        // output head: hidden state to logits
};

struct ModelWeight : Weight {
  WeightRole role;
};

}  // namespace infer
