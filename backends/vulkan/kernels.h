// Which shaders multiply on a device, decided from its description alone: a test may pretend one.
#pragma once

#include <cstdint>
#include <string_view>

#include "ggml-like/data_type.h"

namespace infer {
struct VulkanOptions;
}

namespace infer::vulkan {

struct PhysicalDevice;

// Throws Error(kUnsupported) where the device allows fewer lanes or bindings than the shaders have.
void check_limits(const PhysicalDevice& device);
// Bytes of memory that a workgroup shares, at most.
uint32_t most_shared(const PhysicalDevice& device, const VulkanOptions& options);

// Whether reductions go over subgroups. With `deterministic` they do only where all shaders have subgroups of one size,
// of themselves or because they can ask for it: the pipelines for one and for many rows would add in different orders
// else (Intel's driver takes 8, 16 or 32 lanes for a shader, AMD's 32 or 64).
bool uses_subgroups(const PhysicalDevice& device, const VulkanOptions& options);

// The size of subgroups that shaders with reductions must ask for; 0: whichever the driver takes.
uint32_t reduction_subgroup(const PhysicalDevice& device, const VulkanOptions& options);
// That shaders with cooperative matrices must ask for, 0 where they have it anyway. REQUIRES a device that uses them.
uint32_t matrix_subgroup(const PhysicalDevice& device);

// What products may use besides plain F32 arithmetic.
struct ProductFeatures {
  bool tiles = true;               // what matmul_tiled keeps in shared memory fits
  bool dot = false;                // packed dot products of int8, on activations quantized as the CPU does
  bool matrices = false;           // cooperative matrices of halves with F32 sums
  bool emulated_matrices = false;  // the same spelled out, for tests
  bool asked_for = false;          // by name: what cannot be used is an error
  bool wrong_matrices = false;     // the device has them, and they failed matrices_are_right()
};

// What the device has and is fast at. `wanted`, from INFER_VULKAN_KERNELS, says it instead: "plain", or of "dot",
// "matrix" and "matrix-emulated" some with commas between. A feature that the device does not have is an error then.
ProductFeatures product_features(const PhysicalDevice& device, const VulkanOptions& options, std::string_view wanted);

enum class ProductKernel { kVector, kDot, kTiled, kMatrix };

// For `rows` rows of activations (or pairs of token and expert), of which up to `few` are few. `deterministic`: the
// same for any number of rows.
ProductKernel product_kernel(const ProductFeatures& features, bool deterministic, DataType weight, int64_t rows,
                             int64_t few);

}  // namespace infer::vulkan
