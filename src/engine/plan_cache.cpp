#include "src/engine/plan_cache.h"

#include <algorithm>

#include "ggml-like/bytes_text.h"

namespace infer {

PlanCache::PlanCache(const PlacedModel& placed, ModelMemory& memory, std::span<const std::unique_ptr<Stream>> streams)
    : placed_(placed), memory_(memory), streams_(streams), arenas_(placed.devices().size()) {}

PlanCache::Entry& PlanCache::get(const Bucket& bucket) {
  const auto found = plans_.find(bucket);
  return found != plans_.end() ? found->second : keep(bucket, make_plan(placed_, bucket, &memory_));
}

void PlanCache::add_fallbacks(Entry& entry) {
  for (const Fallback& f : entry.made.plan->fallbacks()) {
    const auto known = std::find_if(fallbacks_.begin(), fallbacks_.end(), [&](const Fallback& k) {
      return k.op == f.op && k.type == f.type && k.device == f.device;
    });
    entry.fallbacks.emplace_back(known - fallbacks_.begin(), f.n_nodes);
    if (known != fallbacks_.end()) continue;
    fallbacks_.push_back(f);
    fallback_runs_.push_back(0);
  }
}

void PlanCache::count_run(const Entry& entry) {
  for (const auto& [index, n_nodes] : entry.fallbacks) fallback_runs_[index] += n_nodes;
}

// New arenas for the devices whose present one is too small for the plan; null for the others.
std::vector<std::unique_ptr<Buffer>> PlanCache::larger_arenas(const Bucket& bucket, const Plan& plan) {
  std::vector<std::unique_ptr<Buffer>> larger(arenas_.size());
  for (size_t d = 0; d < arenas_.size(); ++d) {
    const size_t needed = plan.arena_bytes(static_cast<int>(d));
    if (needed == 0 || (arenas_[d] && arenas_[d]->size() >= needed)) continue;
    Device& device = *placed_.devices()[d];
    const uint64_t free = device.memory().free;
    if (needed > free) {
      throw DeviceMemoryError(device, concat("[memory] a step of ", bucket.tokens, " tokens needs ", bytes_text(needed),
                                             ", ", device.name(), " has ", bytes_text(free), " free"));
    }
    larger[d] = allocate_on(device, needed);
  }
  return larger;
}

// All new arenas are there before any old one is given up, so that a failure leaves the other plans as they were.
PlanCache::Entry& PlanCache::keep(const Bucket& bucket, BucketPlan made) {
  std::vector<std::unique_ptr<Buffer>> larger = larger_arenas(bucket, *made.plan);
  const bool grown = std::any_of(larger.begin(), larger.end(), [](const auto& arena) { return arena != nullptr; });
  Entry& kept = plans_.insert_or_assign(bucket, Entry{std::move(made), {}}).first->second;
  add_fallbacks(kept);
  if (grown) {
    for (const auto& stream : streams_) stream->synchronize();
  }
  std::vector<Buffer*> arenas;
  for (size_t d = 0; d < arenas_.size(); ++d) arenas.push_back(larger[d] ? larger[d].get() : arenas_[d].get());
  try {
    kept.made.plan->bind(arenas);
  } catch (...) {
    plans_.erase(bucket);
    throw;
  }
  if (!grown) return kept;
  for (auto& [key, other] : plans_) other.made.plan->bind(arenas);
  for (size_t d = 0; d < arenas_.size(); ++d) {
    if (larger[d]) arenas_[d] = std::move(larger[d]);
  }
  return kept;
}

}  // namespace infer
