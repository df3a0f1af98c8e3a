#include "src/engine/run_step.h"

#include <span>

#include "src/engine/pooling.h"

namespace infer {
namespace {

std::vector<int> fill_inputs(StepInputs& inputs, const StepPlan& plan, const StepOptions& options) {
  inputs.clear();
  const size_t groups = static_cast<size_t>(inputs.capacity().groups);
  std::vector<std::span<const int32_t>> tables(groups);
  std::vector<int> outputs, pooled_rows, other_rows;
  for (const ScheduledSequence& s : plan.sequences) {
    for (size_t g = 0; g < groups; ++g) tables[g] = s.sequence->cache().table(g);
    const int index = inputs.add_sequence(tables, static_cast<int>(s.first_position + s.n_tokens));
    for (int32_t i = 0; i < s.n_tokens; ++i) {
      const int64_t position = s.first_position + i;
      const bool has_logits = i >= s.first_output;
      const int row =
          inputs.add_token(index, s.sequence->tokens()[position], static_cast<int32_t>(position), has_logits);
      outputs.push_back(has_logits ? inputs.n_outputs() - 1 : -1);
      if (options.hidden) inputs.set_hidden(row, options.hidden(*s.sequence, position));
      if (Pooler::pools(*s.sequence, position)) {
        pooled_rows.push_back(row);
      } else if (options.all_hidden && !has_logits) {
        other_rows.push_back(row);
      }
    }
  }
  for (const std::vector<int>* rows : {&pooled_rows, &other_rows}) {
    for (const int row : *rows) {
      inputs.add_hidden_output(row);
      outputs[static_cast<size_t>(row)] = inputs.n_outputs() - 1;
    }
  }
  return outputs;
}

}  // namespace

std::vector<int> run_step(ModelRunner& runner, StepInputs& inputs, const StepPlan& plan, const StepOptions& options) {
  for (const BlockCopy& copy : plan.copies) runner.copy_block(copy.group, copy.from, copy.to);
  std::vector<int> outputs = fill_inputs(inputs, plan, options);
  runner.run(inputs, options.n_deciding);
  return outputs;
}

}  // namespace infer
