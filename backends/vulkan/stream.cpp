#include "backends/vulkan/stream.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"

namespace infer::vulkan {
namespace {

class VulkanEvent final : public Event {
 public:
  VulkanEvent(const VulkanStream& stream, uint64_t value) : stream(stream), value(value) {}
  void wait() const override { stream.wait_for(value); }

  const VulkanStream& stream;
  const uint64_t value;
};

class VulkanSegment final : public Segment {
 public:
  VulkanSegment(const VulkanStream& stream, VkCommandPool pool, std::span<const Dispatch> dispatches)
      : stream_(stream), recording_(stream.context(), pool, dispatches) {}
  ~VulkanSegment() override {
    try {
      stream_.wait_for(last_use);
    } catch (const Error&) {
      // A lost device no longer uses the commands.
    }
  }
  std::span<const VkCommandBuffer> commands() const { return recording_.commands(); }
  uint64_t last_use = 0;  // the number of its last submission

 private:
  const VulkanStream& stream_;
  const Recording recording_;
};

}  // namespace

VulkanStream::VulkanStream(Memory& memory, Pipelines& pipelines)
    : memory_(memory), pipelines_(pipelines), context_(memory.context()) {
  const DeviceFunctions& f = context_.f;
  VkSemaphoreTypeCreateInfo type = {};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo semaphore = {};
  semaphore.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  semaphore.pNext = &type;
  context_.check(f.CreateSemaphore(context_.device, &semaphore, nullptr, &timeline_), "vkCreateSemaphore");
  VkCommandPoolCreateInfo pool = {};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = context_.physical.queue_family;
  const VkResult result = f.CreateCommandPool(context_.device, &pool, nullptr, &pool_);
  if (result != VK_SUCCESS) f.DestroySemaphore(context_.device, timeline_, nullptr);
  context_.check(result, "vkCreateCommandPool");
  context_.add(this);
}

VulkanStream::~VulkanStream() {
  context_.settle();
  context_.remove(this);
  for (std::deque<Staging>* ring : {&uploads_, &downloads_}) {
    for (const Staging& staging : *ring) memory_.free(staging.piece);
  }
  context_.f.DestroyCommandPool(context_.device, pool_, nullptr);
  context_.f.DestroySemaphore(context_.device, timeline_, nullptr);
}

void VulkanStream::wait_for(uint64_t value) const {
  VkSemaphoreWaitInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &timeline_;
  info.pValues = &value;
  context_.check(context_.f.WaitSemaphores(context_.device, &info, UINT64_MAX), "vkWaitSemaphores");
  memory_.see_readback();
}

bool VulkanStream::idle() {
  if (open_) return false;
  VkSemaphoreWaitInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &timeline_;
  info.pValues = &submitted_;
  const VkResult result = context_.f.WaitSemaphores(context_.device, &info, 0);
  if (result == VK_TIMEOUT) return false;
  context_.check(result, "vkWaitSemaphores");
  return true;
}

uint64_t VulkanStream::done() const {
  uint64_t done = 0;
  context_.check(context_.f.GetSemaphoreCounterValue(context_.device, timeline_, &done), "vkGetSemaphoreCounterValue");
  return done;
}

void VulkanStream::submit(std::span<const VkCommandBuffer> commands) {
  const uint64_t value = submitted_ + 1;
  VkTimelineSemaphoreSubmitInfo timeline = {};
  timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &value;
  VkSubmitInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &timeline;
  info.commandBufferCount = static_cast<uint32_t>(commands.size());
  info.pCommandBuffers = commands.data();
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &timeline_;
  context_.submit(info);
  submitted_ = value;
}

std::unique_ptr<Event> VulkanStream::record() {
  flush();
  return std::make_unique<VulkanEvent>(*this, submitted_);
}

// All streams of a device share its queue, and every submission begins with a barrier, so they need no other order.
void VulkanStream::wait(const Event& event) {
  const auto* other = dynamic_cast<const VulkanEvent*>(&event);
  if (!other || &other->stream.context() != &context_) event.wait();
}

void VulkanStream::synchronize() {
  flush();
  wait_for(submitted_);
  deliver();
}

// ---- Segments ----

Operand VulkanStream::range(const Buffer& b, uint64_t offset, uint64_t bytes, bool written) {
  const VulkanBuffer& buffer = static_cast<const VulkanBuffer&>(b);
  const size_t i = buffer.piece_at(offset);
  const Piece& piece = buffer.pieces()[i];
  const uint64_t in_piece = offset - i * buffer.step();
  CHECK_INTERNAL(in_piece + bytes <= piece.bytes);
  const uint64_t start = piece.offset + in_piece;
  const uint64_t begin = start / context_.binding_alignment() * context_.binding_alignment();
  const uint64_t length = (start - begin + std::max<uint64_t>(bytes, 4) + 3) / 4 * 4;
  if (length > context_.max_binding()) {
    throw Error(ErrorCode::kUnsupported,
                concat("[", context_.name(), "] expected tensors of at most ", bytes_text(context_.max_binding()),
                       " other than weights, found ", bytes_text(bytes), ". Use a smaller batch or context."));
  }
  return {piece.buffer,
          begin,
          length,
          written,
          static_cast<uint32_t>((start - begin) / 4),
          static_cast<uint32_t>((start - begin) % 4)};
}

Operand VulkanStream::operand(const TensorRef& tensor, bool written) {
  const TensorDesc& d = *tensor.desc;
  const TypeTraits& t = traits(d.type);
  const int64_t elements = d.shape[0] > 0 ? (d.shape[0] - 1) * d.row_stride + d.shape.row_elements() : 0;
  return range(*tensor.buffer, tensor.offset, static_cast<uint64_t>(elements) / t.block_size * t.type_size, written);
}

void VulkanStream::dispatch_bytes(const std::string& shader, const std::vector<uint32_t>& constants,
                                  std::vector<Operand> operands, const void* push, uint32_t push_bytes, Grid grid,
                                  double work) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  const auto& most = context_.physical.properties.limits.maxComputeWorkGroupCount;
  if (grid.x > most[0] || grid.y > most[1] || grid.z > most[2]) {
    throw Error(ErrorCode::kUnsupported,
                concat("[", context_.name(), "] expected at most ", most[0], " x ", most[1], " x ", most[2],
                       " workgroups for ", shader, ", found ", grid.x, " x ", grid.y, " x ", grid.z));
  }
  for (const Operand& o : operands) {
    if (o.written && (overlap(o, derived_.source) || overlap(o, derived_.copy))) derived_ = {};
  }
  Dispatch d;
  d.pipeline = &pipelines_.get(shader, constants, static_cast<int>(operands.size()));
  d.operands = std::move(operands);
  std::memcpy(d.push.data(), push, push_bytes);
  d.push_bytes = push_bytes;
  d.grid = grid;
  d.work = work;
  pending_.push_back(std::move(d));
}

bool VulkanStream::has(const Derived& d) const {
  const auto same = [](const Operand& a, const Operand& b) {
    return a.handle == b.handle && a.offset == b.offset && a.range == b.range && a.at == b.at;
  };
  return d.form == derived_.form && same(d.source, derived_.source) && same(d.copy, derived_.copy);
}

void VulkanStream::start_recording() {
  pending_.clear();
  derived_ = {};
}

std::unique_ptr<Segment> VulkanStream::compile(std::span<const BoundNode> nodes) {
  start_recording();
  for (const BoundNode& node : nodes) node.record->launch(*node.prepared, node.launch, *this);
  auto made = std::make_unique<VulkanSegment>(*this, pool_, pending_);
  pending_.clear();
  return made;
}

// Copies that have not been submitted yet are submitted with the first commands.
void VulkanStream::run(Segment& s) {
  auto& segment = static_cast<VulkanSegment&>(s);
  for (const VkCommandBuffer commands : segment.commands()) {
    if (const VkCommandBuffer copies = close_transfer()) {
      const VkCommandBuffer both[] = {copies, commands};
      submit(both);
    } else {
      submit({&commands, 1});
    }
    segment.last_use = submitted_;
  }
}

double VulkanStream::time(const std::function<void()>& launch) {
  start_recording();
  launch();
  Recording recording(context_, pool_, pending_);
  pending_.clear();
  synchronize();
  const auto start = std::chrono::steady_clock::now();
  for (const VkCommandBuffer commands : recording.commands()) submit({&commands, 1});
  synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace infer::vulkan
