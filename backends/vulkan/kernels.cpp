#include "backends/vulkan/kernels.h"

#include <algorithm>

#include "backends/vulkan/instance.h"
#include "backends/vulkan/vulkan_device.h"
#include "ggml-like/error.h"

namespace infer::vulkan {
namespace {

void require(bool present, const PhysicalDevice& device, const char* what) {
  if (present) return;
  throw Error(ErrorCode::kUnsupported, concat("[INFER_VULKAN_KERNELS] expected a device with ", what, ", found ",
                                              device.name, " (", device.model, ")"));
}

// Formats whose scales are fp16; the values of other formats may exceed the range of fp16.
bool fits_halves(const TypeTraits& weight) {
  return weight.activation != ActivationFormat::kF32 && weight.type != DataType::kMXFP4;
}

constexpr uint32_t kMatrixSubgroup = 32, kMatrixLanes = 128;  // of matmul_matrix.comp
constexpr uint32_t kMostReductionLanes = 256;                 // of a workgroup with a reduction

bool has_one_size(const PhysicalDevice& device, const VulkanOptions& options) {
  return device.subgroup_least != 0 && device.subgroup_least == device.subgroup_most && !options.subgroups_vary;
}

// Shared memory of the shaders in bytes: the matrices of weights and activations, lists, and the results to store.
constexpr uint32_t kTiledShared = 17664, kMatrixShared = 27908;

// Whether a workgroup of up to `lanes` lanes may require subgroups of `size`.
bool can_ask_for(const PhysicalDevice& device, uint32_t size, uint32_t lanes) {
  return size >= device.subgroup_least && size <= device.subgroup_most && lanes / size <= device.subgroup_control;
}

// Of the sizes that the driver supports: 16 on Intel, where 32 would need too many registers, and 32 on AMD.
uint32_t asked_size(const PhysicalDevice& device) {
  const uint32_t size = std::min(std::max(16u, device.subgroup_least), device.subgroup_most);
  return size != 0 && can_ask_for(device, size, kMostReductionLanes) ? size : 0;
}

bool can_have_matrices(const PhysicalDevice& device, const VulkanOptions& options) {
  return device.half_matrices && most_shared(device, options) >= kMatrixShared &&
         (can_ask_for(device, kMatrixSubgroup, kMatrixLanes) ||
          (device.subgroup_least == kMatrixSubgroup && device.subgroup_most == kMatrixSubgroup));
}

// The most storage buffers of a shader.
uint32_t most_bindings(const PhysicalDevice& device) {
  const VkPhysicalDeviceLimits& limits = device.properties.limits;
  return std::min(
      {limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers, limits.maxPerStageResources});
}

}  // namespace

void check_limits(const PhysicalDevice& device) {
  constexpr uint32_t kLanes = 256, kBindings = 7;  // the most that a shader needs, except those for recurrent states
  const VkPhysicalDeviceLimits& limits = device.properties.limits;
  const uint32_t lanes = std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  const uint32_t bindings = most_bindings(device);
  if (lanes >= kLanes && bindings >= kBindings) return;
  throw Error(ErrorCode::kUnsupported,
              concat("[", device.name, "] expected workgroups of ", kLanes, " lanes and ", kBindings,
                     " storage buffers for a shader, found ", lanes, " and ", bindings, " (", device.model, ")"));
}

bool can_bind_states(const PhysicalDevice& device) { return most_bindings(device) >= kStateBindings; }

uint32_t most_shared(const PhysicalDevice& device, const VulkanOptions& options) {
  const uint32_t own = device.properties.limits.maxComputeSharedMemorySize;
  return options.max_shared ? std::min(own, options.max_shared) : own;
}

bool uses_subgroups(const PhysicalDevice& device, const VulkanOptions& options) {
  if (!device.subgroup_arithmetic || !options.subgroup_arithmetic) return false;
  return !options.deterministic || has_one_size(device, options) || asked_size(device) != 0;
}

uint32_t reduction_subgroup(const PhysicalDevice& device, const VulkanOptions& options) {
  return options.deterministic && !has_one_size(device, options) ? asked_size(device) : 0;
}

uint32_t matrix_subgroup(const PhysicalDevice& device) {
  return can_ask_for(device, kMatrixSubgroup, kMatrixLanes) ? kMatrixSubgroup : 0;
}

ProductFeatures product_features(const PhysicalDevice& device, const VulkanOptions& options, std::string_view wanted) {
  const bool can_dot = device.integer_dot && uses_subgroups(device, options);
  const bool can_matrices = can_have_matrices(device, options);
  ProductFeatures features;
  features.tiles = most_shared(device, options) >= kTiledShared;
  if (wanted.empty()) {
    features.dot = can_dot && device.integer_dot_fast;
    features.matrices = can_matrices;
    features.emulated_matrices = options.emulated_matrices;
    return features;
  }
  features.asked_for = true;
  if (wanted == "plain") return features;
  for (size_t at = 0; at <= wanted.size();) {
    const size_t end = std::min(wanted.find(',', at), wanted.size());
    const std::string_view name = wanted.substr(at, end - at);
    at = end + 1;
    if (name == "dot") {
      require(can_dot, device, "integer dot products and reductions over subgroups");
      features.dot = true;
    } else if (name == "matrix") {
      require(can_matrices, device, "VK_NV_cooperative_matrix (16 x 16 x 16, fp16) and subgroups of 32");
      features.matrices = true;
    } else if (name == "matrix-emulated") {
      require(most_shared(device, options) >= kMatrixShared, device, "28 KiB of shared memory");
      features.emulated_matrices = true;
    } else {
      throw Error(ErrorCode::kInvalidArgument,
                  concat("[INFER_VULKAN_KERNELS] expected plain, dot, matrix or matrix-emulated, found ", name));
    }
  }
  return features;
}

ProductKernel product_kernel(const ProductFeatures& features, bool deterministic, DataType weight, int64_t rows,
                             int64_t few) {
  const TypeTraits& type = traits(weight);
  if (rows > few && !deterministic) {
    const bool matrices = features.matrices || features.emulated_matrices;
    if (matrices && fits_halves(type)) return ProductKernel::kMatrix;
    if (features.tiles) return ProductKernel::kTiled;
  }
  return features.dot && type.activation != ActivationFormat::kF32 ? ProductKernel::kDot : ProductKernel::kVector;
}

}  // namespace infer::vulkan
