// What SPIR-V modules ask for, read from their words. Plain functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace infer::vulkan {

// Numbers of capabilities.
inline constexpr uint32_t kGroupNonUniform = 61, kCooperativeMatrixNV = 5357, kDotProduct = 6019;

// Whether the module declares it.
bool has_capability(std::span<const uint32_t> code, uint32_t capability);
// The module without what it declares about infinities and NaNs, for devices that cannot promise it.
std::vector<uint32_t> without_inf_nan_preserve(std::span<const uint32_t> code);
// One more than its highest binding.
int count_bindings(std::span<const uint32_t> code);

}  // namespace infer::vulkan
