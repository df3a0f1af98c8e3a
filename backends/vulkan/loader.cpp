#include "backends/vulkan/loader.h"

#include <dlfcn.h>

#include "ggml-like/error.h"

namespace infer::vulkan {
namespace {

// `get` is vkGetInstanceProcAddr or vkGetDeviceProcAddr, `of` the instance or device to query.
template <typename Get, typename Of, typename Function>
void load(Get get, Of of, Function& function, const char* name) {
  function = reinterpret_cast<Function>(get(of, name));
  if (!function)
    throw Error(ErrorCode::kUnsupported, concat("[vulkan] expected a driver with ", name, ", found one without it"));
}

const char* result_name(VkResult result) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return "out of host memory";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return "out of device memory";
    case VK_ERROR_INITIALIZATION_FAILED:
      return "initialization failed";
    case VK_ERROR_DEVICE_LOST:
      return "the device was lost (a reset, a crash of the driver, or work that took too long)";
    case VK_ERROR_TOO_MANY_OBJECTS:
      return "too many allocations";
    case VK_ERROR_FEATURE_NOT_PRESENT:
      return "a feature is not present";
    case VK_ERROR_EXTENSION_NOT_PRESENT:
      return "an extension is not present";
    case VK_ERROR_OUT_OF_POOL_MEMORY:
      return "out of pool memory";
    default:
      return "an error";
  }
}

}  // namespace

PFN_vkGetInstanceProcAddr open_loader() {
  static const PFN_vkGetInstanceProcAddr get = [] {
    void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    return library ? reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr")) : nullptr;
  }();
  return get;
}

void load_global(InstanceFunctions& f) {
  f.GetInstanceProcAddr = open_loader();
  load(f.GetInstanceProcAddr, VkInstance{}, f.EnumerateInstanceVersion, "vkEnumerateInstanceVersion");
  load(f.GetInstanceProcAddr, VkInstance{}, f.CreateInstance, "vkCreateInstance");
}

void load_instance(InstanceFunctions& f, VkInstance instance) {
  const auto get = f.GetInstanceProcAddr;
  load(get, instance, f.DestroyInstance, "vkDestroyInstance");
  load(get, instance, f.EnumeratePhysicalDevices, "vkEnumeratePhysicalDevices");
  load(get, instance, f.GetPhysicalDeviceProperties2, "vkGetPhysicalDeviceProperties2");
  load(get, instance, f.GetPhysicalDeviceFeatures2, "vkGetPhysicalDeviceFeatures2");
  load(get, instance, f.GetPhysicalDeviceMemoryProperties2, "vkGetPhysicalDeviceMemoryProperties2");
  load(get, instance, f.GetPhysicalDeviceQueueFamilyProperties, "vkGetPhysicalDeviceQueueFamilyProperties");
  load(get, instance, f.EnumerateDeviceExtensionProperties, "vkEnumerateDeviceExtensionProperties");
  load(get, instance, f.CreateDevice, "vkCreateDevice");
  load(get, instance, f.GetDeviceProcAddr, "vkGetDeviceProcAddr");
}

DeviceFunctions load_device(const InstanceFunctions& instance, VkDevice device) {
  const auto get = instance.GetDeviceProcAddr;
  DeviceFunctions f;
  load(get, device, f.DestroyDevice, "vkDestroyDevice");
  load(get, device, f.GetDeviceQueue, "vkGetDeviceQueue");
  load(get, device, f.DeviceWaitIdle, "vkDeviceWaitIdle");
  load(get, device, f.QueueSubmit, "vkQueueSubmit");
  load(get, device, f.CreateBuffer, "vkCreateBuffer");
  load(get, device, f.DestroyBuffer, "vkDestroyBuffer");
  load(get, device, f.GetBufferMemoryRequirements, "vkGetBufferMemoryRequirements");
  load(get, device, f.AllocateMemory, "vkAllocateMemory");
  load(get, device, f.FreeMemory, "vkFreeMemory");
  load(get, device, f.BindBufferMemory, "vkBindBufferMemory");
  load(get, device, f.MapMemory, "vkMapMemory");
  load(get, device, f.InvalidateMappedMemoryRanges, "vkInvalidateMappedMemoryRanges");
  load(get, device, f.CreateShaderModule, "vkCreateShaderModule");
  load(get, device, f.DestroyShaderModule, "vkDestroyShaderModule");
  load(get, device, f.CreateDescriptorSetLayout, "vkCreateDescriptorSetLayout");
  load(get, device, f.DestroyDescriptorSetLayout, "vkDestroyDescriptorSetLayout");
  load(get, device, f.CreatePipelineLayout, "vkCreatePipelineLayout");
  load(get, device, f.DestroyPipelineLayout, "vkDestroyPipelineLayout");
  load(get, device, f.CreateComputePipelines, "vkCreateComputePipelines");
  load(get, device, f.DestroyPipeline, "vkDestroyPipeline");
  load(get, device, f.CreatePipelineCache, "vkCreatePipelineCache");
  load(get, device, f.DestroyPipelineCache, "vkDestroyPipelineCache");
  load(get, device, f.GetPipelineCacheData, "vkGetPipelineCacheData");
  load(get, device, f.CreateDescriptorPool, "vkCreateDescriptorPool");
  load(get, device, f.DestroyDescriptorPool, "vkDestroyDescriptorPool");
  load(get, device, f.AllocateDescriptorSets, "vkAllocateDescriptorSets");
  load(get, device, f.UpdateDescriptorSets, "vkUpdateDescriptorSets");
  load(get, device, f.CreateCommandPool, "vkCreateCommandPool");
  load(get, device, f.DestroyCommandPool, "vkDestroyCommandPool");
  load(get, device, f.AllocateCommandBuffers, "vkAllocateCommandBuffers");
  load(get, device, f.FreeCommandBuffers, "vkFreeCommandBuffers");
  load(get, device, f.BeginCommandBuffer, "vkBeginCommandBuffer");
  load(get, device, f.EndCommandBuffer, "vkEndCommandBuffer");
  load(get, device, f.CmdBindPipeline, "vkCmdBindPipeline");
  load(get, device, f.CmdBindDescriptorSets, "vkCmdBindDescriptorSets");
  load(get, device, f.CmdPushConstants, "vkCmdPushConstants");
  load(get, device, f.CmdDispatch, "vkCmdDispatch");
  load(get, device, f.CmdPipelineBarrier, "vkCmdPipelineBarrier");
  load(get, device, f.CmdCopyBuffer, "vkCmdCopyBuffer");
  load(get, device, f.CreateSemaphore, "vkCreateSemaphore");
  load(get, device, f.DestroySemaphore, "vkDestroySemaphore");
  load(get, device, f.WaitSemaphores, "vkWaitSemaphores");
  load(get, device, f.GetSemaphoreCounterValue, "vkGetSemaphoreCounterValue");
  return f;
}

void check_result(VkResult result, const char* who, const char* what) {
  if (result == VK_SUCCESS) return;
  const bool memory = result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
                      result == VK_ERROR_TOO_MANY_OBJECTS || result == VK_ERROR_OUT_OF_POOL_MEMORY;
  throw Error(memory ? ErrorCode::kOutOfMemory : ErrorCode::kIo,
              concat("[", who, "] ", what, " failed: ", result_name(result), " (", static_cast<int>(result), ")"));
}

}  // namespace infer::vulkan
