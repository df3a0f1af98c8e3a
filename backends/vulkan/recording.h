// The dispatches of one segment, recorded in command buffers that are submitted in every step. There is a barrier
// between two dispatches if the second reads or writes data that the first has written, or writes data that the first
// has read.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "backends/vulkan/memory.h"
#include "backends/vulkan/pipelines.h"

namespace infer::vulkan {

// A storage buffer of a dispatch. A binding begins at the alignment that the device requires; the data begins `at`
// 4-byte words and `skip` bytes after that.
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
  double work = 0;  // approximate number of multiplications and additions
};

// The operands used since the last barrier.
class Hazards {
 public:
  // Adds the operand; true if it needs a barrier first.
  bool touch(const Operand& operand);
  void clear() { ranges_.clear(); }
  // As touch(), for the operands of one dispatch.
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

// A barrier that makes all earlier writes visible to all later commands, and to the host.
void full_barrier(const DeviceFunctions& f, VkCommandBuffer commands);

class Recording {
 public:
  Recording(Context& context, VkCommandPool pool, std::span<const Dispatch> dispatches);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // To be submitted in this order, one by one: each has a bounded amount of work.
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
