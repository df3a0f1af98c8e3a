// The Vulkan instance of the process and the devices it has, each with the properties that this backend asks about.
// Made on first use and kept to the end of the process; reading is safe from any thread.
#pragma once

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
  uint32_t subgroup_size = 1;
  bool subgroup_arithmetic = false;  // reductions over a subgroup in compute shaders
  bool subgroup_fixed = false;       // every shader runs with that size; else a driver chooses for each
  bool memory_budget = false;        // VK_EXT_memory_budget
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
