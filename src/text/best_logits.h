// The best logits of a row, as selected by the device that holds all of them.
#pragma once

#include <cstdint>
#include <span>

namespace infer {

struct BestLogits {
  std::span<const int32_t> ids;   // tokens, highest logit first; ties: lower id first
  std::span<const float> values;  // their logits
  float log_sum_exp = 0;          // over the whole row; NaN if any logit is NaN or +inf, or all are -inf
};

}  // namespace infer
