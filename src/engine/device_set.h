// The devices of a run, opened once and shared by those who plan and those who run. Outlives everything made of it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/registry.h"

namespace infer {

struct DeviceSet {
  std::vector<std::unique_ptr<Device>> devices;  // [0] is the CPU, which takes what the others can not do
  std::vector<int> of_layers;                    // those that take layers, in the user's order

  int find(const std::string& name) const;  // -1 when it is none of them
  std::string names() const;                // "cpu, ref"
  std::vector<Device*> list() const;
  std::string description() const;  // for people: "vulkan0 (llvmpipe ...) and <the processor>"
};

// The CPU and the devices that the user named, which may be the CPU as well. Throws Error(kInvalidArgument) when there
// are none or one is named twice, and what open_device() throws.
std::shared_ptr<DeviceSet> open_devices(const std::vector<std::string>& names, const DeviceOptions& options);

// The CPU and the GPU that is taken where the user named none, `gpu` (see default_accelerator()). The CPU alone where
// that is "", and where it can not be opened, of which `note` gets a line.
std::shared_ptr<DeviceSet> open_default_devices(const std::string& gpu, const DeviceOptions& options,
                                                const std::function<void(const std::string& line)>& note);

}  // namespace infer
