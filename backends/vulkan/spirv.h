// Properties of SPIR-V modules, read from their words. Plain functions that any thread may call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace infer::vulkan {

// Numbers of capabilities in SPIR-V.
inline constexpr uint32_t kGroupNonUniform = 61, kCooperativeMatrixNV = 5357, kDotProduct = 6019;

// Whether the module declares the capability.
bool has_capability(std::span<const uint32_t> code, uint32_t capability);
// The module without its declaration about infinities and NaNs, for devices that do not support it.
std::vector<uint32_t> without_inf_nan_preserve(std::span<const uint32_t> code);
// The highest binding of the module, plus one.
int count_bindings(std::span<const uint32_t> code);

}  // namespace infer::vulkan
