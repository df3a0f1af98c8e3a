// The compute shaders of this backend as SPIR-V, compiled by glslc when the program was built.
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
// Null when there is none of that name.
const Shader* find_shader(std::string_view name);

}  // namespace infer::vulkan
