// A Vulkan layer for tests, between the program and the driver: it simulates failing drivers, and makes lavapipe report
// that it is a GPU. Loaded by VK_LAYER_PATH=FOLDER VK_INSTANCE_LAYERS=VK_LAYER_INFER_faults; controlled by the
// environment:
//
//   INFER_FAULTS_TYPE=discrete|integrated|software   the type that devices report
//   INFER_FAULTS_MEMORY=N    the N-th call that can run out of memory does (VK_ERROR_OUT_OF_DEVICE_MEMORY)
//   INFER_FAULTS_LOST=N      the device is lost at the N-th submission: it and all later calls on the queue fail
//
// Prints what it did to standard error. Supports one instance and one kind of device per process, and one thread that
// submits.
#include <vulkan/vk_layer.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

int number(const char* name) { return std::atoi(std::string(environment(name)).c_str()); }

PFN_vkGetInstanceProcAddr next_instance_function = nullptr;
PFN_vkGetDeviceProcAddr next_device_function = nullptr;
PFN_vkGetPhysicalDeviceProperties2 next_properties = nullptr;
VkInstance instance = nullptr;

// The result to return from a call instead of passing it to the driver; VK_SUCCESS: pass it on.
enum class Kind { kMemory, kSubmission, kWaiting };

VkResult verdict(Kind kind, const char* name) {
  static std::atomic<int> memory_calls = 0, submissions = 0;
  static std::atomic<bool> lost = false;
  if (kind == Kind::kMemory) {
    if (++memory_calls != number("INFER_FAULTS_MEMORY")) return VK_SUCCESS;
    std::fprintf(stderr, "vulkan_faults: %s finds no memory\n", name);
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  if (kind == Kind::kSubmission && ++submissions == number("INFER_FAULTS_LOST")) {
    std::fprintf(stderr, "vulkan_faults: the device is lost\n");
    lost = true;
  }
  return lost ? VK_ERROR_DEVICE_LOST : VK_SUCCESS;
}

struct Watched {
  const char* name;
  Kind kind;
  PFN_vkVoidFunction here, next;
};
extern std::array<Watched, 18> watched;

template <size_t kIndex, typename... Arguments>
VKAPI_ATTR VkResult VKAPI_CALL watch(Arguments... arguments) {
  const Watched& w = watched[kIndex];
  const VkResult result = verdict(w.kind, w.name);
  return result != VK_SUCCESS ? result : reinterpret_cast<VkResult(VKAPI_PTR*)(Arguments...)>(w.next)(arguments...);
}

template <size_t kIndex, typename Function>
constexpr Watched row(const char* name, Kind kind) {
  return {name, kind, reinterpret_cast<PFN_vkVoidFunction>(static_cast<Function>(&watch<kIndex>)), nullptr};
}

std::array<Watched, 18> watched = {
    row<0, PFN_vkCreateBuffer>("vkCreateBuffer", Kind::kMemory),
    row<1, PFN_vkAllocateMemory>("vkAllocateMemory", Kind::kMemory),
    row<2, PFN_vkBindBufferMemory>("vkBindBufferMemory", Kind::kMemory),
    row<3, PFN_vkMapMemory>("vkMapMemory", Kind::kMemory),
    row<4, PFN_vkCreateShaderModule>("vkCreateShaderModule", Kind::kMemory),
    row<5, PFN_vkCreateDescriptorSetLayout>("vkCreateDescriptorSetLayout", Kind::kMemory),
    row<6, PFN_vkCreatePipelineLayout>("vkCreatePipelineLayout", Kind::kMemory),
    row<7, PFN_vkCreateComputePipelines>("vkCreateComputePipelines", Kind::kMemory),
    row<8, PFN_vkCreatePipelineCache>("vkCreatePipelineCache", Kind::kMemory),
    row<9, PFN_vkCreateDescriptorPool>("vkCreateDescriptorPool", Kind::kMemory),
    row<10, PFN_vkAllocateDescriptorSets>("vkAllocateDescriptorSets", Kind::kMemory),
    row<11, PFN_vkCreateCommandPool>("vkCreateCommandPool", Kind::kMemory),
    row<12, PFN_vkAllocateCommandBuffers>("vkAllocateCommandBuffers", Kind::kMemory),
    row<13, PFN_vkBeginCommandBuffer>("vkBeginCommandBuffer", Kind::kMemory),
    row<14, PFN_vkEndCommandBuffer>("vkEndCommandBuffer", Kind::kMemory),
    row<15, PFN_vkCreateSemaphore>("vkCreateSemaphore", Kind::kMemory),
    row<16, PFN_vkQueueSubmit>("vkQueueSubmit", Kind::kSubmission),
    row<17, PFN_vkWaitSemaphores>("vkWaitSemaphores", Kind::kWaiting),
};

// The element of the create info's chain in which the loader passes the next layer.
template <typename Link>
Link* find_link(const void* chain, VkStructureType type) {
  auto* link = static_cast<Link*>(const_cast<void*>(chain));
  while (link && !(link->sType == type && link->function == VK_LAYER_LINK_INFO)) {
    link = static_cast<Link*>(const_cast<void*>(link->pNext));
  }
  return link;
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* info, const VkAllocationCallbacks* memory,
                                               VkInstance* made) {
  auto* link = find_link<VkLayerInstanceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  if (!link) return VK_ERROR_INITIALIZATION_FAILED;
  next_instance_function = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create = reinterpret_cast<PFN_vkCreateInstance>(next_instance_function(nullptr, "vkCreateInstance"));
  const VkResult result = create(info, memory, made);
  if (result != VK_SUCCESS) return result;
  instance = *made;
  // If queried later, this would be the first function of the chain.
  next_properties = reinterpret_cast<PFN_vkGetPhysicalDeviceProperties2>(
      next_instance_function(instance, "vkGetPhysicalDeviceProperties2"));
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                                             const VkAllocationCallbacks* memory, VkDevice* made) {
  if (const VkResult result = verdict(Kind::kMemory, "vkCreateDevice")) return result;
  auto* link = find_link<VkLayerDeviceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  if (!link) return VK_ERROR_INITIALIZATION_FAILED;
  next_device_function = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  const auto next = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create = reinterpret_cast<PFN_vkCreateDevice>(next(instance, "vkCreateDevice"));
  return create(physical, info, memory, made);
}

VKAPI_ATTR void VKAPI_CALL get_properties(VkPhysicalDevice physical, VkPhysicalDeviceProperties2* properties) {
  next_properties(physical, properties);
  const std::string_view type = environment("INFER_FAULTS_TYPE");
  VkPhysicalDeviceType& says = properties->properties.deviceType;
  if (type == "discrete") says = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  if (type == "integrated") says = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  if (type == "software") says = VK_PHYSICAL_DEVICE_TYPE_CPU;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char* name) {
  if (std::string_view(name) == "vkGetDeviceProcAddr") return reinterpret_cast<PFN_vkVoidFunction>(device_function);
  const PFN_vkVoidFunction next = next_device_function(device, name);
  for (Watched& w : watched) {
    if (std::string_view(name) != w.name) continue;
    w.next = next;
    return w.here;
  }
  return next;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance asked, const char* name) {
  const std::string_view n = name;
  if (n == "vkGetInstanceProcAddr") return reinterpret_cast<PFN_vkVoidFunction>(instance_function);
  if (n == "vkCreateInstance") return reinterpret_cast<PFN_vkVoidFunction>(create_instance);
  if (n == "vkCreateDevice") return reinterpret_cast<PFN_vkVoidFunction>(create_device);
  if (n == "vkGetDeviceProcAddr") return reinterpret_cast<PFN_vkVoidFunction>(device_function);
  if (n == "vkGetPhysicalDeviceProperties2") return reinterpret_cast<PFN_vkVoidFunction>(get_properties);
  return next_instance_function ? next_instance_function(asked, name) : nullptr;
}

}  // namespace

extern "C" VK_LAYER_EXPORT VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* version) {
  version->loaderLayerInterfaceVersion = 2;
  version->pfnGetInstanceProcAddr = instance_function;
  version->pfnGetDeviceProcAddr = device_function;
  version->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}
