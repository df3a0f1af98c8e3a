// What a model, and a draft for it, take of this machine's memory, what else would fit, and why. Every number comes
// from the sums that a run makes (plan_memory), with nothing allocated. Pure functions of the machine as it is now.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/engine/engine.h"

namespace infer {

// A number that was chosen, by the user or by what the machine has, and the reason for it.
struct PlanChoice {
  std::string what;  // "layers", "tensors", "context", "parallel", "fits", "largest_context", "most_parallel"
  std::string reason;
};

struct MemoryPlan {
  std::vector<DeviceUse> devices;
  std::vector<DeviceUse> draft;  // of the same devices, in the same order; empty without a draft
  int64_t context = 0;
  int parallel = 1;
  uint64_t cache_per_token = 0, cache = 0;  // bytes over all devices, without the draft's
  uint64_t draft_cache_per_token = 0;
  bool fits = true;
  int64_t largest_context = 0;  // with this many sequences: whole blocks, at most what the model was trained with
  int64_t most_parallel = 0;    // with this context, at most kMostParallel
  std::vector<PlanChoice> choices;

  uint64_t needed(size_t device) const;
};

inline constexpr int kMostParallel = 4096;

struct PlanQuestion {
  std::shared_ptr<Model> model, draft;  // draft: null without
  EngineOptions options;
  std::string layers;  // -ngl as given; "" when it was not
};

// Throws Error(kInvalidArgument) for a draft of another vocabulary, and what plan_memory throws.
MemoryPlan plan_memory_of(const PlanQuestion& question);

}  // namespace infer
