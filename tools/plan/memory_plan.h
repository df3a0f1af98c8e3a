// The memory that a model, and its draft, need on this machine, what else would fit, and why. Every number comes from
// the same calculation as a run (plan_memory), which allocates nothing. Pure functions of the machine's current state.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/engine/engine.h"

namespace infer {

// A number chosen by the user or derived from the machine, and the reason for it.
struct PlanChoice {
  std::string what;  // "layers", "tensors", "context", "parallel", "fits", "largest_context", "most_parallel"
  std::string reason;
};

// Per device.
struct ModelUses {
  std::vector<DeviceUse> model, draft;  // draft: empty if there is none

  uint64_t needed(size_t device) const;
};

struct MemoryPlan {
  ModelUses uses;
  int64_t context = 0;
  int parallel = 1;
  uint64_t cache_per_token = 0, cache = 0;  // bytes over all devices, without the draft
  uint64_t draft_cache_per_token = 0;
  bool fits = true;
  int64_t largest_context = 0;  // with this many sequences: whole blocks, at most the trained context
  int64_t most_parallel = 0;    // with this context; at most kMostParallel
  std::vector<PlanChoice> choices;
};

inline constexpr int kMostParallel = 4096;

struct PlanQuestion {
  std::shared_ptr<Model> model;
  EngineOptions options;
  std::string layers;  // -ngl as given; "" if not given
};

// Throws what check_draft() and plan_memory() throw.
MemoryPlan plan_memory_of(const PlanQuestion& question);

}  // namespace infer
