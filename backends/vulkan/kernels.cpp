#include "backends/vulkan/kernels.h"

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

}  // namespace

ProductFeatures product_features(const PhysicalDevice& device, const VulkanOptions& options, std::string_view wanted) {
  const bool can_dot = device.integer_dot && device.subgroup_arithmetic && options.subgroup_arithmetic;
  if (wanted.empty()) return {.dot = can_dot && device.integer_dot_fast};
  ProductFeatures features;
  if (wanted == "plain") return features;
  if (wanted == "dot") {
    require(can_dot, device, "integer dot products and reductions over subgroups");
    features.dot = true;
    return features;
  }
  throw Error(ErrorCode::kInvalidArgument, concat("[INFER_VULKAN_KERNELS] plain or dot, found ", wanted));
}

ProductKernel product_kernel(const ProductFeatures& features, bool deterministic, DataType weight, int64_t rows,
                             int64_t few) {
  if (rows > few && !deterministic) return ProductKernel::kTiled;
  const bool quantized = traits(weight).activation != ActivationFormat::kF32;
  return features.dot && quantized ? ProductKernel::kDot : ProductKernel::kVector;
}

}  // namespace infer::vulkan
