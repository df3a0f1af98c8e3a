// GPUs through Vulkan 1.2: every operation as compute shaders, weights as they lie in the file. The loader is opened at
// run time; without it no device is listed. See docs/notes/vulkan.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ggml-like/backend.h"

namespace infer {

struct VulkanOptions {
  bool deterministic = false;  // one kernel per operation whatever the batch, see docs/notes/vulkan.md
  // For tests: limits below those of the device, 0 for its own; and what a device may lack.
  uint64_t budget = 0;          // bytes of memory; also INFER_VULKAN_BUDGET_MB
  uint64_t max_allocation = 0;  // bytes of one allocation
  uint64_t max_binding = 0;     // bytes that a shader sees of one buffer
  uint32_t max_shared = 0;      // bytes that a workgroup shares
  int fail_allocation = 0;      // the N-th allocation fails, counted from 1; also INFER_VULKAN_FAIL_ALLOCATION
  bool unified_memory = true;   // false: staging buffers even where the host addresses the device's memory
  bool coherent_memory = true;  // false: what the device writes is made visible to the host each time
  bool keeps_inf_nan = true;    // compilers can be told that there are infinities and NaNs
  bool subgroup_arithmetic = true;
  bool subgroups_vary = false;     // the driver chooses their size for each shader
  uint32_t subgroup_size = 0;      // lanes that reductions count on; drivers may take another number anyway
  bool emulated_matrices = false;  // products by matrices spelled out where `kernels` says nothing
  bool fail_matrices = false;      // products by cooperative matrices seem wrong
  std::string kernels = {};        // of products, see kernels.h; also INFER_VULKAN_KERNELS
};

// Names of the devices of this machine, real GPUs first: "vulkan0", "vulkan1", ... Empty without Vulkan.
std::vector<std::string> vulkan_device_names();
// The first of them that is a GPU and no processor playing one; "" if there is none.
std::string first_vulkan_gpu();

// REQUIRES a name of the list. Throws Error when the driver refuses.
std::unique_ptr<Device> create_vulkan_device(const std::string& name, const VulkanOptions& options = {});

}  // namespace infer
