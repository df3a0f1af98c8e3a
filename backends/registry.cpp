#include "backends/registry.h"

#include <algorithm>

#include "backends/cpu/cpu_device.h"
#include "ggml-like/error.h"
#include "ggml-like/ref/ref_device.h"
#ifdef INFER_VULKAN
#include "backends/vulkan/vulkan_device.h"
#endif

namespace infer {

std::vector<std::string> device_names() {
  std::vector<std::string> names = {"cpu", "ref"};
#ifdef INFER_VULKAN
  for (std::string& name : vulkan_device_names()) names.push_back(std::move(name));
#endif
  return names;
}

std::string default_accelerator() {
#ifdef INFER_VULKAN
  return first_vulkan_gpu();
#else
  return "";
#endif
}

std::unique_ptr<Device> open_device(const std::string& name, const DeviceOptions& options) {
  if (name == "cpu") return create_cpu_device({options.n_threads, "", options.n_threads_batch, options.processors});
  if (name == "ref") return create_ref_device();
  const std::vector<std::string> names = device_names();
#ifdef INFER_VULKAN
  if (name.starts_with("vulkan") && std::find(names.begin(), names.end(), name) != names.end()) {
    VulkanOptions vulkan;
    vulkan.deterministic = options.deterministic;
    return create_vulkan_device(name, vulkan);
  }
#endif
  std::string known;
  for (const std::string& n : names) known += (known.empty() ? "" : ", ") + n;
  throw Error(ErrorCode::kInvalidArgument, concat("[device] one of ", known, ", found ", name));
}

std::vector<std::string> cpu_level_names() { return cpu_levels(); }

}  // namespace infer
