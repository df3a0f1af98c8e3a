#include "backends/vulkan/context.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "ggml-like/error.h"

namespace infer::vulkan {

namespace {

std::string_view wanted_kernels() {
  const char* text = std::getenv("INFER_VULKAN_KERNELS");
  return text ? text : "";
}

// A GPU with 1 Tflop/s needs 17 ms for 17 Gflop. Integrated GPUs may be ten times as slow, and shaders do not reach the
// peak of a GPU.
double work_of(const PhysicalDevice& physical) {
  const bool slow = physical.type != VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU && !physical.is_software();
  return slow ? 4e9 : 17e9;
}

}  // namespace

uint64_t environment_number(const char* name) {
  const char* text = std::getenv(name);
  if (!text || !*text) return 0;
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (*end || value == 0 || value > (uint64_t{1} << 40)) {
    throw Error(ErrorCode::kInvalidArgument, concat("[", name, "] expected a positive integer, found ", text));
  }
  return value;
}

Context::Context(const PhysicalDevice& p, const VulkanOptions& o)
    : physical(p), options(o), products(product_features(p, o, o.kernels.empty() ? wanted_kernels() : o.kernels)) {
  check_limits(physical);
  const double asked = 1e6 * static_cast<double>(environment_number("INFER_VULKAN_SUBMISSION_MFLOP"));
  max_work_ = asked > 0 ? asked : work_of(physical);
  const InstanceFunctions& instance_functions = instance().functions;
  const float priority = 1;
  VkDeviceQueueCreateInfo queue = {};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = physical.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkPhysicalDeviceVulkan12Features v12 = {};
  v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  v12.timelineSemaphore = VK_TRUE;
  std::vector<const char*> extensions;
  if (physical.memory_budget) extensions.push_back(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot = {};
  dot.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES;
  dot.shaderIntegerDotProduct = VK_TRUE;
  // A device need not list extensions that are part of 1.3.
  const auto enable = [&](const char* name) {
    if (physical.extensions.contains(name)) extensions.push_back(name);
  };
  if (products.dot) {
    enable(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
    v12.pNext = &dot;
  }
  VkPhysicalDeviceSubgroupSizeControlFeatures sizes = {};
  sizes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
  sizes.subgroupSizeControl = sizes.computeFullSubgroups = VK_TRUE;
  if (physical.subgroup_control != 0) {
    enable(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
    sizes.pNext = std::exchange(v12.pNext, &sizes);
  }
  VkPhysicalDeviceCooperativeMatrixFeaturesNV matrices = {};
  matrices.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_NV;
  matrices.cooperativeMatrix = VK_TRUE;
  if (products.matrices) {
    extensions.push_back(VK_NV_COOPERATIVE_MATRIX_EXTENSION_NAME);
    v12.shaderFloat16 = v12.vulkanMemoryModel = VK_TRUE;
    matrices.pNext = v12.pNext;
    v12.pNext = &matrices;
  }
  VkDeviceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &v12;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  check(instance_functions.CreateDevice(physical.handle, &info, nullptr, &device), "vkCreateDevice");
  f = load_device(instance_functions, device);
  f.GetDeviceQueue(device, physical.queue_family, 0, &queue_);
}

Context::~Context() {
  if (!device) return;
  wait();
  f.DestroyDevice(device, nullptr);
}

void Context::submit(const VkSubmitInfo& info) {
  const std::lock_guard lock(queue_mutex_);
  submitted_ = true;
  check(f.QueueSubmit(queue_, 1, &info, nullptr), "vkQueueSubmit");
}

void Context::settle() {
  for (Submitter* submitter : submitters_) {
    try {
      submitter->flush();
    } catch (const Error&) {
    }
  }
  wait();
}

// Drivers without hardware, which only compile shaders, do not support waiting.
void Context::wait() {
  if (submitted_) f.DeviceWaitIdle(device);
}

uint64_t Context::max_binding() const {
  const uint64_t own = physical.properties.limits.maxStorageBufferRange;
  return options.max_binding ? std::min(own, options.max_binding) : own;
}

}  // namespace infer::vulkan
