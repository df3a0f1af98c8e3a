// The compute shaders of this backend in SPIR-V, compiled by glslc when the program is built.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace infer::vulkan {

struct Shader {
  std::string_view name;  // "rms_norm", "matmul_vector.Q4_K"
  std::span<const uint32_t> code;
};

std::span<const Shader> all_shaders();
// Null if there is none of that name.
const Shader* find_shader(std::string_view name);

}  // namespace infer::vulkan
