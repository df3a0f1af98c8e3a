// Which memory types are used. The lists are those of real drivers, shortened.
#include "backends/vulkan/memory.h"

#include <doctest/doctest.h>

#include <vector>

using namespace infer;
using vulkan::device_memory_type;
using vulkan::readback_memory_type;
using vulkan::upload_memory_type;

namespace {

constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                kMappable = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
                                kVisible = kMappable | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                                kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
                                kCoherentAmd = VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD,
                                kProtected = VK_MEMORY_PROPERTY_PROTECTED_BIT;

struct Type {
  VkMemoryPropertyFlags flags;
  uint32_t heap;
};

VkPhysicalDeviceMemoryProperties listed(const std::vector<Type>& types, const std::vector<double>& heaps_in_gib) {
  VkPhysicalDeviceMemoryProperties memory = {};
  for (const Type& type : types) memory.memoryTypes[memory.memoryTypeCount++] = {type.flags, type.heap};
  for (const double gib : heaps_in_gib) {
    memory.memoryHeaps[memory.memoryHeapCount++].size = static_cast<VkDeviceSize>(gib * (1u << 30));
  }
  return memory;
}

}  // namespace

TEST_CASE("memory of discrete GPUs: their own, invisible to the host, and cached host memory for reading back") {
  // NVIDIA with all memory visible to the host; types that are not used come first.
  const auto nvidia =
      listed({{0, 1}, {kLocal, 0}, {kVisible, 1}, {kVisible | kCached, 1}, {kLocal | kVisible, 2}}, {24, 32, 0.24});
  CHECK(device_memory_type(nvidia, false, true).index == 1);
  CHECK_FALSE(device_memory_type(nvidia, false, true).unified);
  CHECK(upload_memory_type(nvidia, ~0u) == 2);
  CHECK(readback_memory_type(nvidia, ~0u) == 3);
  CHECK(readback_memory_type(nvidia, ~(1u << 3)) == 2);
  // AMD with 256 MiB visible to the host, and types that need features.
  const auto amd = listed({{kLocal, 0},
                           {kVisible, 1},
                           {kLocal | kVisible, 2},
                           {kVisible | kCached, 1},
                           {kLocal | kCoherentAmd, 0},
                           {kLocal | kProtected, 0}},
                          {15.75, 16, 0.25});
  CHECK(device_memory_type(amd, false, true).index == 0);
  CHECK(upload_memory_type(amd, ~0u) == 1);
  CHECK(readback_memory_type(amd, ~0u) == 3);
  CHECK(vulkan::device_memory_type(listed({{kLocal | kProtected, 0}}, {8}), false, true).index ==
        vulkan::kNoMemoryType);
  // If all memory is visible to the host, it is used for lack of any other.
  const auto window = listed({{kLocal | kVisible, 1}, {kVisible | kCached, 0}}, {32, 16});
  CHECK(device_memory_type(window, false, true).index == 0);
}

TEST_CASE("memory of integrated GPUs: no copies if the host can read it through its caches") {
  const auto intel = listed({{kLocal | kVisible | kCached, 0}}, {12});
  CHECK(device_memory_type(intel, true, true).index == 0);
  CHECK(device_memory_type(intel, true, true).unified);
  CHECK_FALSE(device_memory_type(intel, true, false).unified);
  // Intel without a shared cache: cached memory is not coherent. Results are read from it after an invalidation.
  const auto meteor = listed({{kLocal | kVisible, 0}, {kLocal | kMappable | kCached, 0}}, {12});
  CHECK_FALSE(device_memory_type(meteor, true, true).unified);
  CHECK(device_memory_type(meteor, true, true).index == 0);
  CHECK(upload_memory_type(meteor, ~0u) == 0);
  CHECK(readback_memory_type(meteor, ~0u) == 1);
  // AMD reports two thirds of the memory as the GPU's own.
  const std::vector<Type> amd = {{kLocal, 0}, {kVisible, 1}, {kLocal | kVisible, 0}, {kVisible | kCached, 1}};
  CHECK(device_memory_type(listed(amd, {20, 10}), true, true).index == 0);
  // With only half a GiB of its own, it can use the rest as well.
  const vulkan::DeviceMemoryType rest = device_memory_type(listed(amd, {0.5, 30}), true, true);
  CHECK(rest.index == 1);
  CHECK_FALSE(rest.unified);
  // The GPU has two heaps of its own, the smaller one first.
  CHECK(device_memory_type(listed({{kLocal, 0}, {kVisible, 1}, {kLocal, 2}}, {32, 16, 64}), true, true).index == 2);
}
