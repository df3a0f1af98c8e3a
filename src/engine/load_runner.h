// Decides how much of a model goes to the devices, and loads it: as much as was asked for, or as much as fits.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "src/engine/model_runner.h"

namespace infer {

// Memory of a device that `auto` plans with: what is free less what is reserved and a margin of a tenth, at most 512
// MiB, for what no plan counts (pipelines, the driver's own).
uint64_t usable_memory(uint64_t free, uint64_t reserved);

// What the first device other than the CPU that has too little memory lacks: "16.00 MiB of the 12.00 MiB that vulkan0
// has free less a margin"; "" where all have enough. `reserved` is left to others, in bytes per device of the set;
// missing ones are 0.
std::string shortage_of(std::span<const DeviceUse> uses, std::span<const uint64_t> reserved);

// The parts (see placeable_parts) that fit, by the sums of a run. Only devices other than the CPU are asked.
struct Fit {
  int parts = 0;
  std::string shortage;  // "one more would need ...", as shortage_of(); "" where all fit
};
Fit fit_parts(const std::shared_ptr<const Model>& model, RunnerOptions options, std::span<const uint64_t> reserved);

// A runner that is loaded. Where a device's memory does not suffice, with fewer parts there, which `note` is told in
// one line; with strict offload, and where it is the host's memory that is short, Error(kOutOfMemory) instead, which
// says how many would fit. `note` may be null.
std::unique_ptr<ModelRunner> load_runner(std::shared_ptr<const Model> model, const RunnerOptions& options,
                                         const std::function<void(const std::string& line)>& note);

// One line on an operation that runs on the CPU because its device has no kernel for it.
std::string fallback_text(const Fallback& fallback);

}  // namespace infer
