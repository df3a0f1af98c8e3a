// The devices of a run, opened once and shared by planning and execution. Outlives everything made from it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/registry.h"

namespace infer {

struct DeviceSet {
  std::vector<std::unique_ptr<Device>> devices;  // [0] is the CPU, which runs whatever the others cannot
  std::vector<int> of_layers;                    // those that hold layers, in the user's order

  int find(const std::string& name) const;  // -1 if the set does not contain it
  std::string names() const;                // "cpu, ref"
  std::vector<Device*> list() const;
  std::string description() const;  // human-readable: "vulkan0 (llvmpipe ...) and <the processor>"
};

// Opens the CPU and the devices that the user named, which may include the CPU. Throws Error(kInvalidArgument) if none
// is named, or if one is named twice or is one card under two backends, and what open_device() throws.
std::shared_ptr<DeviceSet> open_devices(const std::vector<std::string>& names, const DeviceOptions& options);

// Opens the CPU and `gpu`, the default GPU when the user named none (see default_accelerator()). Opens the CPU alone if
// `gpu` is "" or cannot be opened; in the latter case `note` gets a line.
std::shared_ptr<DeviceSet> open_default_devices(const std::string& gpu, const DeviceOptions& options,
                                                const std::function<void(const std::string& line)>& note);

}  // namespace infer
