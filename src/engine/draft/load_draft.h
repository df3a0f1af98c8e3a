// A draft model beside its target: whether the two go together, what it takes of the devices, and loading it.
#pragma once

#include <memory>
#include <vector>

#include "src/engine/draft/draft_model.h"
#include "src/engine/engine_options.h"

namespace infer {

// The options with the target's prediction layer as the draft, if they ask for it. Throws Error(kUnsupported) where the
// target has none although it must, and Error(kInvalidArgument) where the options have a draft model as well.
EngineOptions with_prediction(const EngineOptions& options, const Model& target);

// Throws Error(kInvalidArgument) where the draft's vocabulary is another (but for unused tokens) or it is no smaller
// than its target; the message is a sentence.
void check_draft(const Model& target, const Model& draft);

// What the runner of options.speculation.draft gets, all of it on the first device and the CPU. `options.opened` is not
// null, here and below. Throws as runner_options() does.
RunnerOptions draft_runner_options(const EngineOptions& options);
// What the draft would allocate on each device; empty without a draft. Throws as runner_options() does.
std::vector<DeviceUse> plan_draft_memory(const EngineOptions& options);

// Loads options.speculation.draft beside its target, whose scheduler has `config`. `runner`: from
// draft_runner_options(), before the target took its memory. Throws as load_runner() does; Error(kOutOfMemory) says
// that the memory holds the target alone.
std::unique_ptr<DraftModel> load_draft(const EngineOptions& options, const RunnerOptions& runner,
                                       const SchedulerConfig& config);

}  // namespace infer
