// Compiles shaders with every driver. Some drivers compile without hardware: with RADV_FORCE_FAMILY=navi21 in the
// environment, Mesa's driver for AMD lists that GPU on any machine, with its limits and its compiler but without
// memory, so nothing can run.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "backends/vulkan/pipelines.h"
#include "backends/vulkan/shaders.h"
#include "backends/vulkan/spirv.h"
#include "ggml-like/error.h"
#include "tests/support/skip.h"

using namespace infer;
using namespace infer::test;
using vulkan::PhysicalDevice;

namespace {

// The GPUs of the machine, real or only listed, if it has any.
std::vector<PhysicalDevice> compilers() {
  std::vector<PhysicalDevice> devices = vulkan::instance().devices;
  const auto software = std::find_if(devices.begin(), devices.end(), [](auto& d) { return d.is_software(); });
  if (software != devices.begin()) devices.erase(software, devices.end());
  return devices;
}

bool can_compile(const vulkan::Shader& shader, const vulkan::Context& context) {
  if (vulkan::has_capability(shader.code, vulkan::kCooperativeMatrixNV)) return context.products.matrices;
  return context.products.dot || !vulkan::has_capability(shader.code, vulkan::kDotProduct);
}

}  // namespace

TEST_CASE("every shader compiles, with every driver of the machine") {
  if (compilers().empty()) return test::skip("compiling shaders", "no Vulkan device");
  for (const PhysicalDevice& physical : compilers()) {
    for (const bool deterministic : {false, true}) {
      CAPTURE(physical.model);
      CAPTURE(deterministic);
      const VulkanOptions options = {.deterministic = deterministic};
      const bool dot = physical.integer_dot, matrices = vulkan::product_features(physical, options, "").matrices;
      const std::string kernels = concat(dot ? "dot" : "plain", dot && matrices ? ",matrix" : "");
      vulkan::Context context(physical, {.deterministic = deterministic, .kernels = kernels});
      vulkan::Pipelines pipelines(context);
      int count = 0;
      for (const vulkan::Shader& shader : vulkan::all_shaders()) {
        if (!can_compile(shader, context)) continue;
        // Software renderers compile slowly: they compile the shaders of only one weight type.
        if (physical.is_software() && shader.name.find('.') != std::string::npos && !shader.name.ends_with("Q8_0")) {
          continue;
        }
        CAPTURE(shader.name);
        CHECK(pipelines.get(std::string(shader.name), {}, vulkan::count_bindings(shader.code)).handle != nullptr);
        ++count;
      }
      CHECK(count > 25);
      std::printf("%s, %s%s: %d shaders\n", physical.model.c_str(), physical.driver.c_str(),
                  deterministic ? ", deterministic" : "", count);
    }
  }
}

TEST_CASE("deterministic: pipelines with reductions require one size of subgroups where the driver would choose") {
  for (const PhysicalDevice& physical : compilers()) {
    CAPTURE(physical.model);
    if (physical.subgroup_control == 0) {
      test::skip("requested subgroup sizes", "a device without them");
      continue;
    }
    const VulkanOptions options = {.deterministic = true, .subgroups_vary = true};
    vulkan::Context context(physical, options);
    vulkan::Pipelines pipelines(context);
    const uint32_t asked = vulkan::reduction_subgroup(physical, options);
    CHECK(asked >= physical.subgroup_least);
    CHECK(asked <= physical.subgroup_most);
    CHECK(pipelines.get("rms_norm", {asked}, 5).subgroup_size == asked);
    CHECK(pipelines.get("matmul_vector.Q4_K", {asked, 2, 4}, 6).subgroup_size == asked);
    CHECK(pipelines.get("matmul_tiled.Q4_K", {}, 6).subgroup_size == 0);
  }
}

TEST_CASE("compiled shaders of another device or driver are not loaded") {
  PhysicalDevice device;
  device.properties.vendorID = 0x10de;
  device.properties.deviceID = 0x2204;
  for (uint8_t i = 0; i < VK_UUID_SIZE; ++i) device.cache_uuid.push_back(i);
  VkPipelineCacheHeaderVersionOne header = {sizeof header, VK_PIPELINE_CACHE_HEADER_VERSION_ONE, 0x10de, 0x2204, {}};
  std::copy(device.cache_uuid.begin(), device.cache_uuid.end(), header.pipelineCacheUUID);
  const auto accepted = [&](const VkPipelineCacheHeaderVersionOne& h, size_t bytes) {
    std::vector<char> data(std::max(sizeof h, bytes));
    std::memcpy(data.data(), &h, sizeof h);
    data.resize(bytes);
    return vulkan::is_cache_of(data, device);
  };
  CHECK(accepted(header, sizeof header));
  CHECK(accepted(header, 1000));
  CHECK_FALSE(accepted(header, sizeof header - 1));
  CHECK_FALSE(accepted(header, 0));
  VkPipelineCacheHeaderVersionOne other = header;
  other.vendorID = 0x1002;
  CHECK_FALSE(accepted(other, 1000));
  other = header;
  other.deviceID = 1;
  CHECK_FALSE(accepted(other, 1000));
  other = header;
  other.pipelineCacheUUID[15] ^= 1;
  CHECK_FALSE(accepted(other, 1000));
}

TEST_CASE("shaders declare infinities and NaNs, except for drivers that do not support it") {
  constexpr uint32_t kSignedZeroInfNanPreserve = 4466;
  for (const vulkan::Shader& shader : vulkan::all_shaders()) {
    if (shader.name == "probe_read") continue;  // reads integers
    CAPTURE(shader.name);
    CHECK(vulkan::has_capability(shader.code, kSignedZeroInfNanPreserve));
    const std::vector<uint32_t> without = vulkan::without_inf_nan_preserve(shader.code);
    CHECK_FALSE(vulkan::has_capability(without, kSignedZeroInfNanPreserve));
    CHECK(without.size() == shader.code.size() - 2 - 4);  // the capability and the mode
  }
  const std::vector<PhysicalDevice> devices = compilers();
  if (devices.empty()) return test::skip("compiling shaders", "no Vulkan device");
  vulkan::Context context(devices.front(), {.keeps_inf_nan = false});
  vulkan::Pipelines pipelines(context);
  for (const char* name : {"paged_attention", "top_k"}) {
    CHECK(pipelines.get(name, {}, vulkan::count_bindings(vulkan::find_shader(name)->code)).handle != nullptr);
  }
}
