// Chooses among the quantizations of a model one that fits this machine, by the memory plan of infer plan.
#pragma once

#include <string>
#include <vector>

#include "src/engine/engine_options.h"
#include "src/hub/hub.h"

namespace infer {

struct FittingVariant {
  Variant variant;
  std::string reason;  // a line for the user
};

// The preferred one if it fits, or else the largest that does; only what the plan needs of each file is downloaded.
// `variants`: the preferred one first. Throws Error(kOutOfMemory) if none fits, and what opening the model throws.
FittingVariant choose_fitting_variant(Hub& hub, const std::vector<Variant>& variants, const EngineOptions& options);

}  // namespace infer
