// The Vulkan instance of the process and the devices it has, each with the properties that this backend asks about.
// Made on first use and kept to the end of the process; reading is safe from any thread.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "backends/vulkan/loader.h"

namespace infer::vulkan {

struct PhysicalDevice {
  VkPhysicalDevice handle = nullptr;
  std::string name;  // "vulkan0", by which the user asks for it
  std::string model, driver;
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  VkPhysicalDeviceProperties properties = {};
  VkPhysicalDeviceMemoryProperties memory = {};
  std::vector<uint8_t> cache_uuid;  // of compiled pipelines
  uint32_t queue_family = 0;
  uint64_t max_allocation = 0, max_buffer = 0;  // bytes of one allocation, of one buffer
  std::set<std::string> extensions;             // that the driver lists
  uint32_t subgroup_size = 1;
  bool subgroup_arithmetic = false;  // reductions over a subgroup in compute shaders
  // Between which sizes the driver chooses for each shader (Intel 8 to 32, AMD 32 or 64); equal: there is one size.
  // 0: unknown.
  uint32_t subgroup_least = 0, subgroup_most = 0;
  // A compute shader may ask for one of them, all lanes of its subgroups in use (VK_EXT_subgroup_size_control), with up
  // to so many subgroups in a workgroup. 0: it may not.
  uint32_t subgroup_control = 0;
  bool keeps_inf_nan = false;  // shaders may ask that infinities and NaNs of 32 bits are what they should be
  bool memory_budget = false;  // VK_EXT_memory_budget
  // Dot products of four int8 packed in a word: present (VK_KHR_shader_integer_dot_product), and in one instruction.
  bool integer_dot = false, integer_dot_fast = false;

  bool half_matrices = false;  // VK_NV_cooperative_matrix with what has_half_matrices() asks for, and what it needs

  // A processor that plays a GPU (lavapipe).
  bool is_software() const { return type == VK_PHYSICAL_DEVICE_TYPE_CPU; }
};

// Whether a subgroup can multiply 16 x 16 x 16 halves with F32 sums.
bool has_half_matrices(std::span<const VkCooperativeMatrixPropertiesNV> kinds);

struct Instance {
  InstanceFunctions functions;
  VkInstance handle = nullptr;
  std::vector<PhysicalDevice> devices;  // real GPUs first: discrete, integrated, virtual, then software
};

// Without a loader, or with one too old, an instance without devices.
const Instance& instance();

}  // namespace infer::vulkan
