#include "backends/vulkan/instance.h"

#include <algorithm>
#include <utility>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"

namespace infer::vulkan {
namespace {

// The lowest version that includes timeline semaphores and the properties queried below.
constexpr uint32_t kVersion = VK_API_VERSION_1_2;

int rank(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return 4;
    default:
      return 3;
  }
}

std::set<std::string> list_extensions(const InstanceFunctions& f, VkPhysicalDevice device) {
  uint32_t count = 0;
  f.EnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> all(count);
  f.EnumerateDeviceExtensionProperties(device, nullptr, &count, all.data());
  std::set<std::string> names;
  for (uint32_t i = 0; i < count; ++i) names.insert(all[i].extensionName);
  return names;
}

// A queue family for compute work, preferably without graphics, so that it does not wait for the display's work.
bool find_queue_family(const InstanceFunctions& f, VkPhysicalDevice device, uint32_t& family) {
  uint32_t count = 0;
  f.GetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> all(count);
  f.GetPhysicalDeviceQueueFamilyProperties(device, &count, all.data());
  bool found = false;
  for (uint32_t i = 0; i < count; ++i) {
    if (!(all[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) continue;
    const bool draws = all[i].queueFlags & VK_QUEUE_GRAPHICS_BIT;
    if (found && draws) continue;
    family = i;
    found = true;
    if (!draws) break;
  }
  return found;
}

// REQUIRES a device with VK_NV_cooperative_matrix.
bool find_half_matrices(const InstanceFunctions& f, VkInstance instance, VkPhysicalDevice device) {
  const auto list = reinterpret_cast<PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesNV>(
      f.GetInstanceProcAddr(instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesNV"));
  if (!list) return false;
  uint32_t count = 0;
  list(device, &count, nullptr);
  VkCooperativeMatrixPropertiesNV empty = {};
  empty.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_NV;
  std::vector<VkCooperativeMatrixPropertiesNV> kinds(count, empty);
  if (list(device, &count, kinds.data()) != VK_SUCCESS) return false;
  return has_half_matrices(kinds);
}

void describe_subgroups(const VkPhysicalDeviceVulkan11Properties& v11,
                        const VkPhysicalDeviceSubgroupSizeControlProperties& sizes,
                        const VkPhysicalDeviceSubgroupSizeControlFeatures& control, PhysicalDevice& d) {
  d.subgroup_size = v11.subgroupSize;
  d.subgroup_arithmetic = (v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
                          (v11.subgroupSupportedOperations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT);
  d.subgroup_least = sizes.minSubgroupSize;
  d.subgroup_most = sizes.maxSubgroupSize;
  if (control.subgroupSizeControl && control.computeFullSubgroups &&
      (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT)) {
    d.subgroup_control = sizes.maxComputeWorkgroupSubgroups;
  }
}

void describe_identity(const VkPhysicalDeviceProperties& properties, const char* driver, PhysicalDevice& d) {
  d.properties = properties;
  d.model = properties.deviceName;
  d.driver = driver;
  d.type = properties.deviceType;
  d.cache_uuid.assign(properties.pipelineCacheUUID, properties.pipelineCacheUUID + VK_UUID_SIZE);
}

// The structs that the driver fills in for a device. The queries chain those that the device knows and leave the others
// zero. The chains are pointers from one struct to the next, so that an object cannot be copied.
struct Report {
  Report() = default;
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  bool is_1_3 = false;
  VkPhysicalDeviceProperties core = {};
  VkPhysicalDeviceVulkan11Properties v11 = {};
  VkPhysicalDeviceVulkan12Properties v12 = {};
  VkPhysicalDeviceVulkan13Properties v13 = {};
  VkPhysicalDeviceShaderIntegerDotProductProperties dot = {};
  VkPhysicalDeviceSubgroupSizeControlProperties sizes = {};
  VkPhysicalDeviceVulkan12Features v12_features = {};
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot_features = {};
  VkPhysicalDeviceSubgroupSizeControlFeatures control = {};
  VkPhysicalDeviceCooperativeMatrixFeaturesNV matrices = {};
};

// A Vulkan 1.3 device has the extension's functions even if it does not list the extension.
bool has_dot(const Report& r, const PhysicalDevice& d) {
  return r.is_1_3 || d.extensions.contains(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
}
bool has_sizes(const Report& r, const PhysicalDevice& d) {
  return r.is_1_3 || d.extensions.contains(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
}

void query_properties(const InstanceFunctions& f, const PhysicalDevice& d, Report& r) {
  r.v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES;
  r.v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
  r.v12.pNext = r.is_1_3 ? &r.v13 : nullptr;
  r.dot.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES;
  if (has_dot(r, d)) r.dot.pNext = std::exchange(r.v12.pNext, &r.dot);
  r.sizes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES;
  if (has_sizes(r, d)) r.sizes.pNext = std::exchange(r.v12.pNext, &r.sizes);
  r.v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
  r.v11.pNext = &r.v12;
  VkPhysicalDeviceProperties2 all = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &r.v11, {}};
  f.GetPhysicalDeviceProperties2(d.handle, &all);
  r.core = all.properties;
}

void query_features(const InstanceFunctions& f, const PhysicalDevice& d, Report& r) {
  r.v12_features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  r.dot_features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES;
  if (has_dot(r, d)) r.v12_features.pNext = &r.dot_features;
  r.control.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
  if (has_sizes(r, d)) r.control.pNext = std::exchange(r.v12_features.pNext, &r.control);
  r.matrices.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_NV;
  if (d.extensions.contains(VK_NV_COOPERATIVE_MATRIX_EXTENSION_NAME)) {
    r.matrices.pNext = std::exchange(r.v12_features.pNext, &r.matrices);
  }
  VkPhysicalDeviceFeatures2 all = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &r.v12_features, {}};
  f.GetPhysicalDeviceFeatures2(d.handle, &all);
}

// Returns false if the device lacks something that this backend needs.
bool describe(const InstanceFunctions& f, VkInstance instance, VkPhysicalDevice handle, PhysicalDevice& d) {
  VkPhysicalDeviceProperties2 first = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, nullptr, {}};
  f.GetPhysicalDeviceProperties2(handle, &first);
  if (first.properties.apiVersion < kVersion) return false;

  Report r;
  r.is_1_3 = first.properties.apiVersion >= VK_API_VERSION_1_3;
  d.handle = handle;
  d.extensions = list_extensions(f, handle);
  query_properties(f, d, r);
  query_features(f, d, r);
  if (!r.v12_features.timelineSemaphore || !find_queue_family(f, handle, d.queue_family)) return false;
  VkPhysicalDeviceMemoryProperties2 memory = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, nullptr, {}};
  f.GetPhysicalDeviceMemoryProperties2(handle, &memory);

  describe_identity(r.core, r.v12.driverName, d);
  d.card = hex_text(r.v11.deviceUUID, sizeof r.v11.deviceUUID);
  describe_subgroups(r.v11, r.sizes, r.control, d);
  d.memory = memory.memoryProperties;
  d.max_allocation = r.v11.maxMemoryAllocationSize;
  d.max_buffer = r.is_1_3 ? r.v13.maxBufferSize : r.v11.maxMemoryAllocationSize;
  d.keeps_inf_nan = r.v12.shaderSignedZeroInfNanPreserveFloat32;
  d.memory_budget = d.extensions.contains(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  d.integer_dot = r.dot_features.shaderIntegerDotProduct;
  d.integer_dot_fast = d.integer_dot && r.dot.integerDotProduct4x8BitPackedSignedAccelerated;
  d.half_matrices = r.matrices.cooperativeMatrix && r.v12_features.shaderFloat16 && r.v12_features.vulkanMemoryModel &&
                    find_half_matrices(f, instance, handle);
  return true;
}

Instance make_instance() {
  Instance made;
  if (!open_loader()) return made;
  try {
    load_global(made.functions);
    uint32_t version = 0;
    if (made.functions.EnumerateInstanceVersion(&version) != VK_SUCCESS || version < kVersion) return made;
    VkApplicationInfo application = {};
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.pApplicationName = application.pEngineName = "infer";
    application.apiVersion = std::min(version, static_cast<uint32_t>(VK_API_VERSION_1_3));
    VkInstanceCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &application;
    if (made.functions.CreateInstance(&info, nullptr, &made.handle) != VK_SUCCESS) return made;
    load_instance(made.functions, made.handle);
  } catch (const Error&) {  // a loader from before Vulkan 1.2
    return made;
  }
  uint32_t count = 0;
  made.functions.EnumeratePhysicalDevices(made.handle, &count, nullptr);
  std::vector<VkPhysicalDevice> handles(count);
  if (made.functions.EnumeratePhysicalDevices(made.handle, &count, handles.data()) != VK_SUCCESS) return made;
  for (const VkPhysicalDevice handle : handles) {
    PhysicalDevice device;
    if (describe(made.functions, made.handle, handle, device)) made.devices.push_back(std::move(device));
  }
  std::stable_sort(made.devices.begin(), made.devices.end(),
                   [](const PhysicalDevice& a, const PhysicalDevice& b) { return rank(a.type) < rank(b.type); });
  for (size_t i = 0; i < made.devices.size(); ++i) made.devices[i].name = concat("vulkan", i);
  return made;
}

}  // namespace

bool has_half_matrices(std::span<const VkCooperativeMatrixPropertiesNV> kinds) {
  return std::any_of(kinds.begin(), kinds.end(), [](const VkCooperativeMatrixPropertiesNV& m) {
    return m.MSize == 16 && m.NSize == 16 && m.KSize == 16 && m.AType == VK_COMPONENT_TYPE_FLOAT16_NV &&
           m.BType == VK_COMPONENT_TYPE_FLOAT16_NV && m.CType == VK_COMPONENT_TYPE_FLOAT32_NV &&
           m.DType == VK_COMPONENT_TYPE_FLOAT32_NV && m.scope == VK_SCOPE_SUBGROUP_NV;
  });
}

const Instance& instance() {
  static const Instance made = make_instance();
  return made;
}

}  // namespace infer::vulkan
