// Compiled shaders of one device: made on first use, kept in memory by shader and constants, and on disk in the
// driver's own form under $XDG_CACHE_HOME/infer (or ~/.cache/infer). One thread at a time.
//
// All shaders have the same form: storage buffers at the bindings 0, 1, ... of set 0, up to 128 bytes of push
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
  uint32_t subgroup_size = 0;  // that was asked for; 0: whichever the driver takes
};

// Whether a driver's data begin as Vulkan says those of this device do: vendor, device and the driver's identifier.
// Drivers have crashed on others'.
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
  size_t read_bytes_ = 0;  // that the file had
  bool changed_ = false;   // something was compiled, or taken from the file
};

}  // namespace infer::vulkan
