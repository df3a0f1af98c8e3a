// The best logits of a row, as a device that holds them all selects them.
#pragma once

#include <cstdint>
#include <span>

namespace infer {

struct BestLogits {
  std::span<const int32_t> ids;   // tokens, the one with the highest logit first, the lower id first among equals
  std::span<const float> values;  // their logits
  float log_sum_exp = 0;          // over the whole row; NaN if any logit is NaN or +inf, or all are -inf
};

}  // namespace infer
