#include "backends/vulkan/kernels.h"

#include <algorithm>

#include "backends/vulkan/instance.h"
#include "backends/vulkan/vulkan_device.h"
#include "ggml-like/error.h"

namespace infer::vulkan {
namespace {

void require(bool present, const PhysicalDevice& device, const char* what) {
  if (present) return;
  throw Error(ErrorCode::kUnsupported,
              concat("[INFER_VULKAN_KERNELS] a device with ", what, ", found ", device.name, " (", device.model, ")"));
}

// A format whose scales are halves: of the others the values may be beyond what a half can be.
bool fits_halves(const TypeTraits& weight) {
  return weight.activation != ActivationFormat::kF32 && weight.type != DataType::kMXFP4;
}

}  // namespace

bool uses_subgroups(const PhysicalDevice& device, const VulkanOptions& options) {
  return device.subgroup_arithmetic && options.subgroup_arithmetic && (device.subgroup_fixed || !options.deterministic);
}

ProductFeatures product_features(const PhysicalDevice& device, const VulkanOptions& options, std::string_view wanted) {
  constexpr uint32_t kMatrixSubgroup = 32;  // of matmul_matrix.comp
  const bool can_dot = device.integer_dot && uses_subgroups(device, options);
  const bool can_matrices = device.half_matrices && device.subgroup_size == kMatrixSubgroup;
  ProductFeatures features;
  if (wanted.empty()) {
    features.dot = can_dot && device.integer_dot_fast;
    features.matrices = can_matrices;
    return features;
  }
  if (wanted == "plain") return features;
  for (size_t at = 0; at <= wanted.size();) {
    const size_t end = std::min(wanted.find(',', at), wanted.size());
    const std::string_view name = wanted.substr(at, end - at);
    at = end + 1;
    if (name == "dot") {
      require(can_dot, device, "integer dot products and reductions over subgroups");
      features.dot = true;
    } else if (name == "matrix") {
      require(can_matrices, device, "VK_NV_cooperative_matrix, 16 x 16 x 16 halves, and subgroups of 32");
      features.matrices = true;
    } else if (name == "matrix-emulated") {
      features.emulated_matrices = true;
    } else {
      throw Error(ErrorCode::kInvalidArgument,
                  concat("[INFER_VULKAN_KERNELS] plain, dot, matrix or matrix-emulated, found ", name));
    }
  }
  return features;
}

ProductKernel product_kernel(const ProductFeatures& features, bool deterministic, DataType weight, int64_t rows,
                             int64_t few) {
  const TypeTraits& type = traits(weight);
  if (rows > few && !deterministic) {
    const bool matrices = features.matrices || features.emulated_matrices;
    return matrices && fits_halves(type) ? ProductKernel::kMatrix : ProductKernel::kTiled;
  }
  return features.dot && type.activation != ActivationFormat::kF32 ? ProductKernel::kDot : ProductKernel::kVector;
}

}  // namespace infer::vulkan
