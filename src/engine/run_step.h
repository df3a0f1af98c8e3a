// Runs one step: turns the scheduler's plan into the inputs of a runner.
#pragma once

#include <functional>
#include <vector>

#include "src/engine/model_runner.h"
#include "src/engine/scheduler.h"

namespace infer {

struct StepOptions {
  int64_t n_deciding = 0;   // as in ModelRunner::run()
  bool all_hidden = false;  // compute the hidden states of all rows
  // For a prediction layer: the hidden state that goes with the sequence's token at a position, [n_embd].
  std::function<std::span<const float>(const Sequence&, int64_t position)> hidden = nullptr;
};

// Makes the plan's copies and runs it. Outputs: first the rows with logits, then those to be pooled, then all others if
// `all_hidden`, each in plan order. Returns the output of each row, -1 if it has none. `inputs` is overwritten.
std::vector<int> run_step(ModelRunner& runner, StepInputs& inputs, const StepPlan& plan, const StepOptions& options);

}  // namespace infer
