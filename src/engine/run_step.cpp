#include "src/engine/run_step.h"

#include <span>
#include <vector>

#include "src/engine/pooling.h"

namespace infer {
namespace {

void fill_inputs(StepInputs& inputs, const StepPlan& plan) {
  inputs.clear();
  const size_t groups = static_cast<size_t>(inputs.capacity().groups);
  std::vector<std::span<const int32_t>> tables(groups);
  std::vector<int> pooled_rows;
  for (const ScheduledSequence& s : plan.sequences) {
    for (size_t g = 0; g < groups; ++g) tables[g] = s.sequence->cache().table(g);
    const int index = inputs.add_sequence(tables, static_cast<int>(s.first_position + s.n_tokens));
    for (int32_t i = 0; i < s.n_tokens; ++i) {
      const int64_t position = s.first_position + i;
      const int row =
          inputs.add_token(index, s.sequence->tokens()[position], static_cast<int32_t>(position), i >= s.first_output);
      if (Pooler::pools(*s.sequence, position)) pooled_rows.push_back(row);
    }
  }
  for (const int row : pooled_rows) inputs.add_hidden_output(row);
}

}  // namespace

void run_step(ModelRunner& runner, StepInputs& inputs, const StepPlan& plan, int64_t n_deciding) {
  for (const BlockCopy& copy : plan.copies) runner.copy_block(copy.group, copy.from, copy.to);
  fill_inputs(inputs, plan);
  runner.run(inputs, n_deciding);
}

}  // namespace infer
