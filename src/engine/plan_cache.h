// The plans of a run, one per bucket, built when a step first needs them and bound to shared memory. The least recently
// used ones are dropped when there are too many: each has command buffers or CUDA graphs of its own. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "src/engine/model_memory.h"

namespace infer {

class PlanCache {
 public:
  // About as many as a server needs that decodes 1 to 64 sequences, with and without a prompt chunk.
  static constexpr size_t kMostPlans = 64;

  // The arguments outlive this; `streams` has one entry per device.
  PlanCache(const PlacedModel& placed, ModelMemory& memory, std::span<const std::unique_ptr<Stream>> streams,
            size_t most_plans = kMostPlans);

  struct Entry {
    BucketPlan made;
    std::vector<std::pair<size_t, int>> fallbacks;  // index into fallbacks(), number of nodes in this plan
    uint64_t last_use = 0;                          // counts calls of get()
  };
  // The bound plan of a bucket, valid until the next call. Throws DeviceMemoryError if the arenas cannot grow enough,
  // and what Plan throws.
  Entry& get(const Bucket& bucket);
  // Adds a plan that was made with this run's memory. The largest is added first: its arenas hold nearly every other
  // plan's activations.
  Entry& keep(const Bucket& bucket, BucketPlan made);

  size_t size() const { return plans_.size(); }
  // Of all plans so far; each (operation, type, device) appears once.
  const std::vector<Fallback>& fallbacks() const { return fallbacks_; }
  // How many nodes have run on the CPU because their device has no kernel; same order as fallbacks().
  const std::vector<int64_t>& fallback_runs() const { return fallback_runs_; }
  void count_run(const Entry& entry);

 private:
  // Memory that all plans share, one entry per device, null if not needed: arenas, and staging memory for results.
  struct Shared {
    std::vector<std::unique_ptr<Buffer>> arenas, staging;
    explicit Shared(size_t n_devices) : arenas(n_devices), staging(n_devices) {}
  };
  Shared larger(const Bucket& bucket, const Plan& plan) const;
  std::vector<PlanBinding> bindings(const Shared& larger, const Plan& plan);
  void add_fallbacks(Entry& entry);
  void make_room();

  const PlacedModel& placed_;
  ModelMemory& memory_;
  const std::span<const std::unique_ptr<Stream>> streams_;
  const size_t most_plans_;
  uint64_t n_uses_ = 0;
  Shared shared_;
  std::map<Bucket, Entry> plans_;
  std::vector<Fallback> fallbacks_;
  std::vector<int64_t> fallback_runs_;
};

}  // namespace infer
