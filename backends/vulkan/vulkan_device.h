// GPUs through Vulkan 1.2: compute shaders for every operation, which read weights in the file's own formats. The
// loader is opened at run time; without it no device is listed. See docs/notes/vulkan.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ggml-like/backend.h"

namespace infer {

struct VulkanOptions {
  bool deterministic = false;  // one kernel per operation for any batch, see docs/notes/vulkan.md
  // For tests: limits lower than the device's (0: the device's own), and features that a device may lack.
  uint64_t budget = 0;          // bytes of memory; also INFER_VULKAN_BUDGET_MB
  uint64_t max_allocation = 0;  // bytes of one allocation
  uint64_t max_binding = 0;     // bytes of a buffer that a shader can bind
  uint32_t max_shared = 0;      // bytes of shared memory in a workgroup
  int fail_allocation = 0;      // the N-th allocation fails, counted from 1; also INFER_VULKAN_FAIL_ALLOCATION
  bool unified_memory = true;   // false: use staging buffers even if the host can access the memory
  bool coherent_memory = true;  // false: make the device's writes visible to the host each time
  bool keeps_inf_nan = true;    // false: the device does not support SignedZeroInfNanPreserve
  bool subgroup_arithmetic = true;
  bool subgroups_vary = false;     // the driver chooses the size for each shader
  uint32_t subgroup_size = 0;      // that reductions rely on; drivers may still choose another
  bool emulated_matrices = false;  // emulated matrices, unless `kernels` is set
  bool fail_matrices = false;      // the check of cooperative matrices fails
  std::string kernels = {};        // for matmuls, see kernels.h; also INFER_VULKAN_KERNELS
};

// The names of the devices of this machine, hardware GPUs first: "vulkan0", "vulkan1", ... Empty without Vulkan.
std::vector<std::string> vulkan_device_names();
// The first hardware GPU among them; software renderers are skipped. "" if there is none.
std::string first_vulkan_gpu();
// See device_card().
std::string vulkan_card(const std::string& name);

// REQUIRES one of those names. Throws Error if the driver fails.
std::unique_ptr<Device> create_vulkan_device(const std::string& name, const VulkanOptions& options = {});

}  // namespace infer
