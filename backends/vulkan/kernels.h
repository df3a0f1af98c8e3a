// Chooses the matmul shaders of a device from its description alone, so that tests can invent devices.
#pragma once

#include <cstdint>
#include <string_view>

#include "ggml-like/data_type.h"

namespace infer {
struct VulkanOptions;
}

namespace infer::vulkan {

struct PhysicalDevice;

// Throws Error(kUnsupported) if the device allows fewer lanes or bindings than the shaders need.
void check_limits(const PhysicalDevice& device);
// Whether shaders may have as many bindings as the operations on recurrent states need.
inline constexpr uint32_t kStateBindings = 11;
bool can_bind_states(const PhysicalDevice& device);
// The most shared memory of a workgroup, in bytes.
uint32_t most_shared(const PhysicalDevice& device, const VulkanOptions& options);

// Whether reductions use subgroups. With `deterministic`, only if all shaders have subgroups of the same size, because
// the device has one size or shaders can require one. Otherwise the pipelines for one row and for many would add in
// different orders (Intel's driver chooses 8, 16 or 32 lanes for a shader, AMD's 32 or 64).
bool uses_subgroups(const PhysicalDevice& device, const VulkanOptions& options);

// The size of subgroups that shaders with reductions must require; 0: the driver chooses.
uint32_t reduction_subgroup(const PhysicalDevice& device, const VulkanOptions& options);
// The size that shaders with cooperative matrices must require; 0 if they have it anyway. REQUIRES a device that uses
// them.
uint32_t matrix_subgroup(const PhysicalDevice& device);

// What matmuls may use besides plain F32 arithmetic.
struct ProductFeatures {
  bool tiles = true;               // matmul_tiled fits in shared memory
  bool dot = false;                // packed int8 dot products; activations are quantized as on the CPU
  bool matrices = false;           // cooperative fp16 matrices with F32 sums
  bool emulated_matrices = false;  // the same in plain code, for tests
  bool asked_for = false;          // selected by name: a feature that cannot be used is an error
  bool wrong_matrices = false;     // the device has matrices, but they failed matrices_are_right()
};

// The features that the device has and that are fast on it. `wanted`, from INFER_VULKAN_KERNELS, overrides that:
// "plain", or a comma-separated list of "dot", "matrix" and "matrix-emulated"; a feature that the device lacks is then
// an error.
ProductFeatures product_features(const PhysicalDevice& device, const VulkanOptions& options, std::string_view wanted);

enum class ProductKernel { kVector, kDot, kTiled, kMatrix };

// The shader for `rows` rows of activations, or pairs of token and expert; up to `few` count as a small batch. With
// `deterministic` it is the same for any number of rows.
ProductKernel product_kernel(const ProductFeatures& features, bool deterministic, DataType weight, int64_t rows,
                             int64_t few);

}  // namespace infer::vulkan
