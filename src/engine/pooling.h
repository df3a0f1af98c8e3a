// Pools the hidden states of each prompt into one vector (Request::pooling). Sums are in double precision and in
// position order, so chunking a prompt does not change the result. One thread.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "src/engine/model_runner.h"
#include "src/engine/scheduler.h"

namespace infer {

// Throws Error(kInvalidFile) if a result is NaN, which means that the weights are damaged.
void check_numbers(std::span<const float> results);

// Divides a vector by its norm. `p` is llama.cpp's --embd-normalize: 2 Euclidean, 1 and other p > 0 the p-norm, 0 the
// largest magnitude divided by 32,760, negative none. A zero vector is unchanged.
void normalize(std::vector<float>& vector, int p);

class Pooler {
 public:
  // Whether the hidden state at this position contributes.
  static bool pools(const Sequence& s, int64_t position);

  // Adds a step's contributing hidden states, in plan order, starting at output row `output`.
  void add(const StepPlan& plan, const ModelRunner& runner, int output);
  // Returns and forgets the vector of a finished sequence, [n_embd], or the classifier's scores. Throws what
  // check_numbers() throws.
  std::vector<float> take(const Sequence& s, const Model& model);
  void forget(RequestId id) { sums_.erase(id); }
  void clear() { sums_.clear(); }

 private:
  std::unordered_map<RequestId, std::vector<double>> sums_;  // [n_embd], over the positions computed
};

}  // namespace infer
