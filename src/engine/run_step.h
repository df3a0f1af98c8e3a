// A step of a plan: from what a scheduler has chosen to what a runner computes.
#pragma once

#include "src/engine/model_runner.h"
#include "src/engine/scheduler.h"

namespace infer {

// Does the plan's copies and runs it. Outputs: first the rows with logits, then those to be pooled, both in the order
// of the plan. `inputs` is overwritten; `n_deciding` as in ModelRunner::run().
void run_step(ModelRunner& runner, StepInputs& inputs, const StepPlan& plan, int64_t n_deciding);

}  // namespace infer
