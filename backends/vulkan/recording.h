// The dispatches of one segment as command buffers that are submitted again and again. Between two dispatches stands a
// barrier where the second touches what the first has written, or writes what it read.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "backends/vulkan/memory.h"
#include "backends/vulkan/pipelines.h"

namespace infer::vulkan {

// A storage buffer of a dispatch. Bindings begin at the alignment the device wants; `at` is how many 4-byte words the
// data begins behind that, `skip` how many bytes on top.
struct Operand {
  VkBuffer handle = nullptr;
  uint64_t offset = 0, range = 0;
  bool written = false;
  uint32_t at = 0, skip = 0;
};

inline bool overlap(const Operand& a, const Operand& b) {
  return a.handle == b.handle && a.offset < b.offset + b.range && b.offset < a.offset + a.range;
}

struct Grid {
  uint32_t x = 1, y = 1, z = 1;  // workgroups
};

struct Dispatch {
  const Pipeline* pipeline = nullptr;
  std::vector<Operand> operands;
  std::array<std::byte, kPushBytes> push;
  uint32_t push_bytes = 0;
  Grid grid;
  double work = 0;  // multiplications and additions, roughly
};

// What was touched since the last barrier.
class Hazards {
 public:
  // Whether this needs a barrier first; notes it either way.
  bool touch(const Operand& operand);
  void clear() { ranges_.clear(); }
  // As touch() for several operands that belong together.
  bool touch(std::span<const Operand> operands);

 private:
  struct Range {
    VkBuffer buffer;
    uint64_t begin, end;
    bool written;
  };
  bool conflicts(const Operand& operand) const;
  std::vector<Range> ranges_;
};

// Everything before is visible to everything behind, the host included.
void full_barrier(const DeviceFunctions& f, VkCommandBuffer commands);

class Recording {
 public:
  Recording(Context& context, VkCommandPool pool, std::span<const Dispatch> dispatches);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // To be submitted in this order, one by one: each holds a bounded amount of work.
  std::span<const VkCommandBuffer> commands() const { return commands_; }

 private:
  void allocate_sets(std::span<const Dispatch> dispatches, std::vector<VkDescriptorSet>& sets);
  void begin();
  void end();
  void release();

  Context& context_;
  VkCommandPool pool_;
  VkDescriptorPool descriptors_ = nullptr;
  std::vector<VkCommandBuffer> commands_;
};

}  // namespace infer::vulkan
