#include "src/engine/plan_cache.h"

#include <algorithm>

#include "ggml-like/bytes_text.h"

namespace infer {

PlanCache::PlanCache(const PlacedModel& placed, ModelMemory& memory, std::span<const std::unique_ptr<Stream>> streams,
                     size_t most_plans)
    : placed_(placed), memory_(memory), streams_(streams), most_plans_(most_plans), shared_(placed.devices().size()) {}

PlanCache::Entry& PlanCache::get(const Bucket& bucket) {
  const auto found = plans_.find(bucket);
  Entry& entry = found != plans_.end() ? found->second : keep(bucket, make_plan(placed_, bucket, &memory_));
  entry.last_use = ++n_uses_;
  return entry;
}

// The device may still be executing the plan; destroying its segments waits for that.
void PlanCache::make_room() {
  while (plans_.size() >= most_plans_) {
    plans_.erase(std::min_element(plans_.begin(), plans_.end(),
                                  [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; }));
  }
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

// New memory for the devices whose current memory is too small for the plan; null for the others.
PlanCache::Shared PlanCache::larger(const Bucket& bucket, const Plan& plan) const {
  Shared larger(shared_.arenas.size());
  for (size_t d = 0; d < shared_.arenas.size(); ++d) {
    Device& device = *placed_.devices()[d];
    const size_t needed = plan.arena_bytes(static_cast<int>(d)), staging = plan.staging_bytes(static_cast<int>(d));
    if (needed > 0 && (!shared_.arenas[d] || shared_.arenas[d]->size() < needed)) {
      const uint64_t free = device.memory().free;
      if (needed > free) {
        throw DeviceMemoryError(device,
                                concat("[memory] A step of ", bucket.tokens, " tokens needs ", bytes_text(needed), ", ",
                                       device.name(), " has ", bytes_text(free), " free"));
      }
      larger.arenas[d] = allocate_on(device, needed);
    }
    const Buffer* arena = larger.arenas[d] ? larger.arenas[d].get() : shared_.arenas[d].get();
    if (staging == 0 || arena->host()) continue;
    if (!shared_.staging[d] || shared_.staging[d]->size() < staging) {
      larger.staging[d] = allocate_staging_on(device, staging);
    }
  }
  return larger;
}

std::vector<PlanBinding> PlanCache::bindings(const Shared& larger, const Plan& plan) {
  const std::vector<Buffer*> steps = memory_.step_buffers(plan);
  std::vector<PlanBinding> bindings;
  const auto either = [](const auto& a, const auto& b) { return a ? a.get() : b.get(); };
  for (size_t d = 0; d < streams_.size(); ++d) {
    bindings.push_back({streams_[d].get(), either(larger.arenas[d], shared_.arenas[d]), steps[d],
                        either(larger.staging[d], shared_.staging[d])});
  }
  return bindings;
}

// All new memory is allocated before any old memory is freed, so a failure leaves the other plans intact.
PlanCache::Entry& PlanCache::keep(const Bucket& bucket, BucketPlan made) {
  Shared larger = this->larger(bucket, *made.plan);
  const auto any = [](const auto& buffers) {
    return std::any_of(buffers.begin(), buffers.end(), [](const auto& buffer) { return buffer != nullptr; });
  };
  const bool grown = any(larger.arenas) || any(larger.staging);
  make_room();
  Entry& kept = plans_.insert_or_assign(bucket, Entry{std::move(made), {}, 0}).first->second;
  add_fallbacks(kept);
  if (grown) {
    for (const auto& stream : streams_) stream->synchronize();
  }
  const StepLayout layout(placed_.options().capacity);
  try {
    kept.made.plan->bind(bindings(larger, *kept.made.plan), layout);
  } catch (...) {
    plans_.erase(bucket);
    throw;
  }
  if (!grown) return kept;
  for (auto& [key, other] : plans_) other.made.plan->bind(bindings(larger, *other.made.plan), layout);
  for (size_t d = 0; d < streams_.size(); ++d) {
    if (larger.arenas[d]) shared_.arenas[d] = std::move(larger.arenas[d]);
    if (larger.staging[d]) shared_.staging[d] = std::move(larger.staging[d]);
  }
  return kept;
}

}  // namespace infer
