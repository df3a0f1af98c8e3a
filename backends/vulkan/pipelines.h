// The compiled shaders of one device. They are compiled on first use and kept in memory, by shader and constants, and
// on disk in the driver's own format under $XDG_CACHE_HOME/infer (or ~/.cache/infer). One thread at a time.
//
// All shaders have the same interface: storage buffers at the bindings 0, 1, ... of set 0, up to 128 bytes of push
// constants, and specialization constants 0, 1, ...
#pragma once

#include <map>
#include <string>
#include <vector>

#include "backends/vulkan/context.h"

namespace infer::vulkan {

inline constexpr uint32_t kPushBytes = 128;
inline constexpr int kMaxBindings = 12;

struct Pipeline {
  VkPipeline handle = nullptr;
  VkPipelineLayout layout = nullptr;
  VkDescriptorSetLayout set_layout = nullptr;
  int n_bindings = 0;
  uint32_t subgroup_size = 0;  // required by the shader; 0: chosen by the driver
};

// Whether the data begin with the header that Vulkan defines for this device: vendor, device and the driver's
// identifier. Drivers have crashed on data from other drivers.
bool is_cache_of(const std::vector<char>& data, const PhysicalDevice& device);

class Pipelines {
 public:
  explicit Pipelines(Context& context);
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  const Pipeline& get(const std::string& shader, const std::vector<uint32_t>& constants, int n_bindings);

 private:
  struct Layout {
    VkDescriptorSetLayout set = nullptr;
    VkPipelineLayout pipeline = nullptr;
  };
  const Layout& layout(int n_bindings);
  std::string cache_file() const;
  void read_cache();
  void write_cache() const;

  Context& context_;
  VkPipelineCache cache_ = nullptr;
  std::map<int, Layout> layouts_;
  std::map<std::pair<std::string, std::vector<uint32_t>>, Pipeline> pipelines_;
  size_t read_bytes_ = 0;  // read from the file
  bool changed_ = false;   // a pipeline was compiled, or loaded from the file
};

}  // namespace infer::vulkan
