// Decides how many layers to offload, and loads the model: as many as asked for, or as many as fit.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "src/engine/model_runner.h"

namespace infer {

// The memory of a device available to -ngl auto: free memory less what is reserved, less a margin of a tenth (at most
// 512 MiB) for what the plan does not count (pipelines, driver allocations).
uint64_t usable_memory(uint64_t free, uint64_t reserved);

// The shortage on the first device other than the CPU with too little memory: "16.00 MiB of the 12.00 MiB that vulkan0
// has free less a margin"; "" if all have enough. `reserved`: bytes left free, per device of the set; missing entries
// are 0.
std::string shortage_of(std::span<const DeviceUse> uses, std::span<const uint64_t> reserved);

// How many parts (see placeable_parts) fit according to the memory plan. Only devices other than the CPU are checked.
struct Fit {
  int parts = 0;
  std::string shortage;  // "one more would need ...", as in shortage_of(); "" if all fit
};
Fit fit_parts(const std::shared_ptr<const Model>& model, RunnerOptions options, std::span<const uint64_t> reserved);

// Loads a runner. If a device is short of memory, offloads fewer parts and gives `note` a line. With strict offload, or
// if host memory is short, throws Error(kOutOfMemory) instead, saying how many would fit. `note` may be null.
std::unique_ptr<ModelRunner> load_runner(std::shared_ptr<const Model> model, const RunnerOptions& options,
                                         const std::function<void(const std::string& line)>& note);

// One line about an operation that runs on the CPU because its device has no kernel for it.
std::string fallback_text(const Fallback& fallback);

}  // namespace infer
