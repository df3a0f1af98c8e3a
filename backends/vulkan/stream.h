// A stream of work on a Vulkan device. Transfers and segments are submitted in order to the device's one queue; a
// timeline semaphore counts the submissions that are done. Memory that the host can access is copied directly while the
// stream is idle; everything else goes through staging buffers without waiting. A segment is recorded once, when it is
// compiled, and submitted in every step.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/vulkan/recording.h"
#include "ggml-like/backend.h"

namespace infer::vulkan {

class VulkanStream final : public Stream, public Submitter {
 public:
  VulkanStream(Memory& memory, Pipelines& pipelines);
  ~VulkanStream() override;

  void upload(Buffer& to, size_t offset, const void* from, size_t bytes) override;
  void download(void* to, const Buffer& from, size_t offset, size_t bytes) override;
  void copy(std::span<const CopyRange> ranges) override;
  std::unique_ptr<Event> record() override;
  void wait(const Event& event) override;
  void synchronize() override;
  std::unique_ptr<Segment> compile(std::span<const BoundNode> nodes) override;
  void run(Segment& segment) override;
  void flush() override;
  // Waits on the host until this many submissions of the stream are done.
  void wait_for(uint64_t submissions) const;

  // ---- For the launch functions of operations, while a segment is recorded ----

  Operand read(const TensorRef& tensor) { return operand(tensor, false); }
  Operand write(const TensorRef& tensor) { return operand(tensor, true); }
  // `bytes` bytes of a buffer from `offset` on, in one piece. Throws Error(kUnsupported) if that exceeds what a shader
  // can bind.
  Operand range(const Buffer& buffer, uint64_t offset, uint64_t bytes, bool written);
  // The step's inputs: binding 0 of every shader.
  Operand step(const Launch& launch) { return range(*launch.step_buffer, 0, launch.step_buffer->size(), false); }
  template <typename Push>
  void dispatch(const std::string& shader, const std::vector<uint32_t>& constants, std::vector<Operand> operands,
                const Push& push, Grid grid, double work = 0) {
    static_assert(sizeof(Push) <= kPushBytes && sizeof(Push) % 4 == 0);
    dispatch_bytes(shader, constants, std::move(operands), &push, sizeof push, grid, work);
  }
  Context& context() const { return context_; }
  // A result that a launch keeps in scratch memory for later launches: `copy` is `source` converted to `form`. Valid
  // until one of the two is written, or the segment ends.
  struct Derived {
    Operand source, copy;
    std::vector<uint32_t> form;
  };
  void keep(Derived derived) { derived_ = std::move(derived); }
  bool has(const Derived& derived) const;
  // The time in seconds that the dispatches of `launch` take on an otherwise idle device.
  double time(const std::function<void()>& launch);

 private:
  // A staging buffer, the bytes used in it, and the last submission that uses it.
  struct Staging {
    Piece piece;
    uint64_t used = 0, last_use = 0;
  };
  // Bytes to copy out of a staging buffer once the work is done.
  struct Delivery {
    void* to;
    const std::byte* from;
    size_t bytes;
  };
  struct Transfer {
    VkCommandBuffer commands = nullptr;
    uint64_t last_use = 0;
  };

  Operand operand(const TensorRef& tensor, bool written);
  void dispatch_bytes(const std::string& shader, const std::vector<uint32_t>& constants, std::vector<Operand> operands,
                      const void* push, uint32_t push_bytes, Grid grid, double work);
  void start_recording();
  void copy_range(const Operand& from, const Operand& to);
  VkCommandBuffer open_transfer();
  // Ends the open transfer, which belongs to the next submission; null if none is open.
  VkCommandBuffer close_transfer();
  void submit(std::span<const VkCommandBuffer> commands);
  bool idle();
  uint64_t done() const;  // submissions
  void deliver();
  Staging& staging_with_room(std::deque<Staging>& ring, Memory::Use use);

  Memory& memory_;
  Pipelines& pipelines_;
  Context& context_;
  VkCommandPool pool_ = nullptr;
  VkSemaphore timeline_ = nullptr;
  uint64_t submitted_ = 0;
  std::deque<Transfer> transfers_;
  Transfer* open_ = nullptr;  // has copies that have not been submitted yet
  Hazards open_hazards_;
  std::deque<Staging> uploads_, downloads_;
  std::vector<Delivery> deliveries_;
  std::vector<Dispatch> pending_;  // of the segment that is being recorded
  Derived derived_;                // also of that segment; none if `copy` has no handle
};

inline VulkanStream& vulkan(Stream& stream) { return static_cast<VulkanStream&>(stream); }

}  // namespace infer::vulkan
