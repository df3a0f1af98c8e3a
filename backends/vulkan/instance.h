// The Vulkan instance of the process and its devices, with the properties that this backend uses. Created on first use
// and kept until the process ends; reading is safe from any thread.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "backends/vulkan/loader.h"

namespace infer::vulkan {

struct PhysicalDevice {
  VkPhysicalDevice handle = nullptr;
  std::string name;  // "vulkan0", as the user selects it
  std::string model, driver;
  std::string card;  // deviceUUID, which CUDA reports as well
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  VkPhysicalDeviceProperties properties = {};
  VkPhysicalDeviceMemoryProperties memory = {};
  std::vector<uint8_t> cache_uuid;  // identifies the form of compiled pipelines
  uint32_t queue_family = 0;
  uint64_t max_allocation = 0, max_buffer = 0;  // in bytes
  std::set<std::string> extensions;             // as listed by the driver
  uint32_t subgroup_size = 1;
  bool subgroup_arithmetic = false;  // reductions over a subgroup in compute shaders
  // The range from which the driver chooses the size of subgroups for each shader (Intel 8 to 32, AMD 32 or 64). Equal
  // if there is only one size; 0 if unknown.
  uint32_t subgroup_least = 0, subgroup_most = 0;
  // If not 0, a compute shader may require full subgroups of a given size (VK_EXT_subgroup_size_control), and this is
  // the most subgroups that its workgroup may then have.
  uint32_t subgroup_control = 0;
  bool keeps_inf_nan = false;  // shaders may require correct handling of infinities and NaNs in F32
  bool memory_budget = false;  // VK_EXT_memory_budget
  // Dot products of four int8 in a word: supported (VK_KHR_shader_integer_dot_product), and accelerated.
  bool integer_dot = false, integer_dot_fast = false;

  bool half_matrices = false;  // VK_NV_cooperative_matrix as matmul_matrix.comp needs it

  // A software renderer that runs on the CPU (lavapipe).
  bool is_software() const { return type == VK_PHYSICAL_DEVICE_TYPE_CPU; }
};

// Whether a subgroup can multiply 16 x 16 x 16 fp16 matrices with F32 sums.
bool has_half_matrices(std::span<const VkCooperativeMatrixPropertiesNV> kinds);

struct Instance {
  InstanceFunctions functions;
  VkInstance handle = nullptr;
  std::vector<PhysicalDevice> devices;  // discrete, integrated and virtual GPUs, then software renderers
};

// Without a loader, or with one that is too old, the instance has no devices.
const Instance& instance();

}  // namespace infer::vulkan
