// The plans of a run, one per bucket, built when a step first needs them and bound to shared memory.
// One thread.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "src/engine/model_memory.h"

namespace infer {

class PlanCache {
 public:
  // The arguments outlive this; `streams` has one entry per device.
  PlanCache(const PlacedModel& placed, ModelMemory& memory, std::span<const std::unique_ptr<Stream>> streams);

  struct Entry {
    BucketPlan made;
    std::vector<std::pair<size_t, int>> fallbacks;  // index into fallbacks(), number of nodes in this plan
  };
  // The bound plan of a bucket. Throws DeviceMemoryError if the arenas cannot grow enough, and what Plan
  // throws.
  Entry& get(const Bucket& bucket);
  // Adds a plan that was made with this run's memory. The largest is added first: its arenas hold nearly every other
  // plan's activations.
  Entry& keep(const Bucket& bucket, BucketPlan made);

  // Of all plans so far; each (operation, type, device) appears once.
  const std::vector<Fallback>& fallbacks() const { return fallbacks_; }
  // How many nodes have run on the CPU because their device has no kernel; same order as fallbacks().
  const std::vector<int64_t>& fallback_runs() const { return fallback_runs_; }
  void count_run(const Entry& entry);

 private:
  // What plans share, one entry per device, null if not needed: arenas, and staging memory for results.
  struct Shared {
    std::vector<std::unique_ptr<Buffer>> arenas, staging;
    explicit Shared(size_t n_devices) : arenas(n_devices), staging(n_devices) {}
  };
  Shared larger(const Bucket& bucket, const Plan& plan) const;
  std::vector<PlanBinding> bindings(const Shared& larger, const Plan& plan);
  void add_fallbacks(Entry& entry);

  const PlacedModel& placed_;
  ModelMemory& memory_;
  const std::span<const std::unique_ptr<Stream>> streams_;
  Shared shared_;
  std::map<Bucket, Entry> plans_;
  std::vector<Fallback> fallbacks_;
  std::vector<int64_t> fallback_runs_;
};

}  // namespace infer
