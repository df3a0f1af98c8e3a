// Pools the hidden states of prompts into one vector each (Request::pooling). Sums are in double precision and in the
// order of positions, so the chunks of a prompt change nothing. One thread.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "src/engine/model_runner.h"
#include "src/engine/scheduler.h"

namespace infer {

// Throws Error(kInvalidFile) when a result is NaN, which means that weights are damaged.
void check_numbers(std::span<const float> results);

class Pooler {
 public:
  // Whether the hidden state of this position counts.
  static bool pools(const Sequence& s, int64_t position);

  // Adds the hidden states of a step: those that count, in the order of the plan, from output row `output` on.
  void add(const StepPlan& plan, const ModelRunner& runner, int output);
  // The vector of a finished sequence, [n_embd]. Throws what check_numbers() throws.
  std::vector<float> take(const Sequence& s);
  void forget(RequestId id) { sums_.erase(id); }
  void clear() { sums_.clear(); }

 private:
  std::unordered_map<RequestId, std::vector<double>> sums_;  // [n_embd], over the positions computed
};

}  // namespace infer
