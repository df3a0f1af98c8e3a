// A step of a plan: from what a scheduler has chosen to what a runner computes.
#pragma once

#include <functional>
#include <vector>

#include "src/engine/model_runner.h"
#include "src/engine/scheduler.h"

namespace infer {

struct StepOptions {
  int64_t n_deciding = 0;   // as in ModelRunner::run()
  bool all_hidden = false;  // the hidden states of all rows are wanted
  // For a prediction layer: the hidden state that comes with the sequence's token at a position, [n_embd].
  std::function<std::span<const float>(const Sequence&, int64_t position)> hidden = nullptr;
};

// Does the plan's copies and runs it. Outputs: first the rows with logits, then those to be pooled, then the others if
// all hidden states are wanted, each in the order of the plan. Returns the output of each row, -1 where it has none.
// `inputs` is overwritten.
std::vector<int> run_step(ModelRunner& runner, StepInputs& inputs, const StepPlan& plan, const StepOptions& options);

}  // namespace infer
