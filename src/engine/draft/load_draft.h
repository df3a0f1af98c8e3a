// Loads a draft model for its target: checks that the two match, and plans the draft's memory.
#pragma once

#include <memory>
#include <vector>

#include "src/engine/draft/draft_model.h"
#include "src/engine/engine_options.h"

namespace infer {

// The options, with the target's prediction layer as the draft if they ask for it. Throws Error(kUnsupported) if one is
// required and the target has none, and Error(kInvalidArgument) if the options name a draft model as well.
EngineOptions with_prediction(const EngineOptions& options, const Model& target);

// Throws Error(kInvalidArgument) if the vocabularies differ (other than in unused tokens), or if the draft is not
// smaller than its target. The message is a sentence.
void check_draft(const Model& target, const Model& draft);

// The runner options of options.speculation.draft, which runs on the first device and the CPU only. Here and below,
// `options.opened` is not null. Throws as runner_options() does.
RunnerOptions draft_runner_options(const EngineOptions& options);
// What the draft would allocate on each device; empty without a draft. Throws as runner_options() does.
std::vector<DeviceUse> plan_draft_memory(const EngineOptions& options);

// Loads options.speculation.draft for a target whose scheduler has `config`. `runner` comes from
// draft_runner_options(), called before the target took its memory. Throws as load_runner() does; Error(kOutOfMemory)
// says that only the target fits.
std::unique_ptr<DraftModel> load_draft(const EngineOptions& options, const RunnerOptions& runner,
                                       const SchedulerConfig& config);

}  // namespace infer
