#include "backends/vulkan/stream.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"

namespace infer::vulkan {
namespace {

constexpr uint64_t kStaging = 4 << 20;  // bytes of a staging buffer
constexpr size_t kStagings = 3;         // of each direction: one is filled while others are copied
constexpr size_t kRecordings = 256;     // kept per stream

class VulkanEvent final : public Event {
 public:
  VulkanEvent(Context& context, VkSemaphore semaphore, uint64_t value)
      : context(context), semaphore(semaphore), value(value) {}
  Context& context;
  VkSemaphore semaphore;
  uint64_t value;
};

// Mixes a number into a hash (the finalizer of splitmix64).
void mix(uint64_t& hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
  hash ^= hash >> 31;
}

void mix(uint64_t& hash, const Buffer* buffer, size_t offset) {
  mix(hash, buffer ? static_cast<const VulkanBuffer*>(buffer)->id() : 0);
  mix(hash, offset);
}

// What a recording depends on besides the plan: where everything lies. Segment keys are a plan's own, and plans are
// bound again when memory grows.
uint64_t key_of(uint64_t segment_key, std::span<const BoundNode> nodes) {
  uint64_t hash = segment_key;
  for (const BoundNode& node : nodes) {
    mix(hash, reinterpret_cast<uintptr_t>(node.prepared));
    mix(hash, static_cast<uint64_t>(node.node));
    for (const auto refs : {node.launch.inputs, node.launch.outputs}) {
      for (const TensorRef& ref : refs) {
        mix(hash, ref.buffer, ref.offset);
        mix(hash, reinterpret_cast<uintptr_t>(ref.desc));
      }
    }
    mix(hash, node.launch.cache.buffer, node.launch.cache.offset);
    mix(hash, node.launch.scratch.buffer, node.launch.scratch.offset);
    mix(hash, node.launch.step_buffer, 0);
  }
  return hash;
}

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
  context_.check(f.CreateSemaphore(context_.device, &semaphore, nullptr, &timeline_), "making a semaphore");
  VkCommandPoolCreateInfo pool = {};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = context_.physical.queue_family;
  const VkResult result = f.CreateCommandPool(context_.device, &pool, nullptr, &pool_);
  if (result != VK_SUCCESS) f.DestroySemaphore(context_.device, timeline_, nullptr);
  context_.check(result, "making a command pool");
  context_.add(this);
}

VulkanStream::~VulkanStream() {
  context_.settle();
  context_.remove(this);
  recordings_.clear();
  for (std::deque<Staging>* ring : {&uploads_, &downloads_}) {
    for (const Staging& staging : *ring) memory_.free(staging.piece);
  }
  context_.f.DestroyCommandPool(context_.device, pool_, nullptr);
  context_.f.DestroySemaphore(context_.device, timeline_, nullptr);
}

void VulkanStream::wait_for(uint64_t value) {
  VkSemaphoreWaitInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &timeline_;
  info.pValues = &value;
  context_.check(context_.f.WaitSemaphores(context_.device, &info, UINT64_MAX), "waiting for the device");
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
  context_.check(result, "waiting for the device");
  return true;
}

void VulkanStream::submit(VkCommandBuffer commands) {
  const uint64_t value = submitted_ + 1;
  VkTimelineSemaphoreSubmitInfo timeline = {};
  timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &value;
  VkSubmitInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &timeline;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &timeline_;
  context_.submit(info);
  submitted_ = value;
}

// ---- Transfers ----

VkCommandBuffer VulkanStream::open_transfer() {
  if (open_) return open_->commands;
  const DeviceFunctions& f = context_.f;
  uint64_t done = 0;
  context_.check(f.GetSemaphoreCounterValue(context_.device, timeline_, &done), "asking how far the device is");
  Transfer* free = nullptr;
  for (Transfer& t : transfers_) {
    if (t.last_use <= done) free = &t;
  }
  if (!free) {
    VkCommandBufferAllocateInfo allocation = {};
    allocation.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    allocation.commandPool = pool_;
    allocation.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocation.commandBufferCount = 1;
    Transfer made;
    context_.check(f.AllocateCommandBuffers(context_.device, &allocation, &made.commands), "allocating commands");
    transfers_.push_back(made);
    free = &transfers_.back();
  }
  VkCommandBufferBeginInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  context_.check(f.BeginCommandBuffer(free->commands, &info), "recording a transfer");
  full_barrier(f, free->commands);
  open_hazards_.clear();
  open_ = free;
  return open_->commands;
}

void VulkanStream::flush() {
  if (!open_) return;
  Transfer* transfer = std::exchange(open_, nullptr);
  full_barrier(context_.f, transfer->commands);
  context_.check(context_.f.EndCommandBuffer(transfer->commands), "recording a transfer");
  submit(transfer->commands);
  transfer->last_use = submitted_;
  for (std::deque<Staging>* ring : {&uploads_, &downloads_}) {
    for (Staging& staging : *ring) {
      if (staging.last_use == UINT64_MAX) staging.last_use = submitted_;
    }
  }
}

void VulkanStream::copy(const Operand& from, const Operand& to) {
  const VkCommandBuffer commands = open_transfer();
  const Operand both[] = {from, to};
  if (open_hazards_.touch(both)) full_barrier(context_.f, commands);
  const VkBufferCopy region = {from.offset, to.offset, from.range};
  context_.f.CmdCopyBuffer(commands, from.handle, to.handle, 1, &region);
}

// The staging buffer at the front that has room, after waiting for its last use where it is needed again.
VulkanStream::Staging& VulkanStream::staging_with_room(std::deque<Staging>& ring, Memory::Use use, bool downloads) {
  if (!ring.empty() && ring.front().used < ring.front().piece.bytes) return ring.front();
  if (ring.size() < kStagings) {
    ring.push_front({memory_.allocate(kStaging, use)});
    return ring.front();
  }
  flush();
  std::rotate(ring.begin(), ring.end() - 1, ring.end());
  if (downloads) synchronize();  // what lies there must be delivered first
  else wait_for(ring.front().last_use);
  ring.front().used = 0;
  return ring.front();
}

void VulkanStream::upload(Buffer& to, size_t offset, const void* from, size_t bytes) {
  const VulkanBuffer& buffer = static_cast<VulkanBuffer&>(to);
  CHECK_INTERNAL(offset + bytes <= buffer.size());
  const auto* source = static_cast<const std::byte*>(from);
  for (size_t i = 0; i < buffer.pieces().size(); ++i) {
    // Pieces overlap: what lies in two goes to both.
    const Piece& piece = buffer.pieces()[i];
    const uint64_t start = i * buffer.step(), end = std::min<uint64_t>(start + piece.bytes, buffer.size());
    uint64_t at = std::max<uint64_t>(offset, start);
    const uint64_t stop = std::min<uint64_t>(offset + bytes, end);
    if (at >= stop) continue;
    if (piece.mapped && idle()) {
      std::memcpy(piece.mapped + (at - start), source + (at - offset), stop - at);
      continue;
    }
    while (at < stop) {
      Staging& staging = staging_with_room(uploads_, Memory::Use::kUpload, false);
      const uint64_t n = std::min(stop - at, staging.piece.bytes - staging.used);
      std::memcpy(staging.piece.mapped + staging.used, source + (at - offset), n);
      copy({staging.piece.buffer, staging.piece.offset + staging.used, n, false},
           {piece.buffer, piece.offset + (at - start), n, true});
      staging.used = std::min(staging.piece.bytes, (staging.used + n + 63) / 64 * 64);
      staging.last_use = UINT64_MAX;  // set when it is submitted
      if (staging.used == staging.piece.bytes) flush();
      at += n;
    }
  }
}

void VulkanStream::download(void* to, const Buffer& from, size_t offset, size_t bytes) {
  const VulkanBuffer& buffer = static_cast<const VulkanBuffer&>(from);
  CHECK_INTERNAL(offset + bytes <= buffer.size());
  auto* target = static_cast<std::byte*>(to);
  for (uint64_t at = offset; at < offset + bytes;) {
    const size_t i = buffer.piece_at(at);
    const Piece& piece = buffer.pieces()[i];
    const uint64_t start = i * buffer.step();
    uint64_t n = std::min<uint64_t>(offset + bytes - at, start + piece.bytes - at);
    if (piece.mapped && idle()) {
      std::memcpy(target + (at - offset), piece.mapped + (at - start), n);
    } else {
      Staging& staging = staging_with_room(downloads_, Memory::Use::kReadback, true);
      n = std::min(n, staging.piece.bytes - staging.used);
      copy({piece.buffer, piece.offset + (at - start), n, false},
           {staging.piece.buffer, staging.piece.offset + staging.used, n, true});
      deliveries_.push_back({target + (at - offset), staging.piece.mapped + staging.used, n});
      staging.used = std::min(staging.piece.bytes, (staging.used + n + 63) / 64 * 64);
      staging.last_use = UINT64_MAX;
    }
    at += n;
  }
}

void VulkanStream::deliver() {
  if (!deliveries_.empty()) {
    for (const Staging& staging : downloads_) memory_.see(staging.piece);
  }
  for (const Delivery& d : deliveries_) std::memcpy(d.to, d.from, d.bytes);
  deliveries_.clear();
  for (std::deque<Staging>* ring : {&uploads_, &downloads_}) {
    for (Staging& staging : *ring) staging.used = 0;
  }
}

void VulkanStream::synchronize() {
  flush();
  wait_for(submitted_);
  deliver();
}

// All streams of a device share its queue, and every submission begins with a barrier: order needs nothing more.
std::unique_ptr<Event> VulkanStream::record() {
  flush();
  return std::make_unique<VulkanEvent>(context_, timeline_, submitted_);
}

void VulkanStream::wait(const Event& event) {
  const auto* other = dynamic_cast<const VulkanEvent*>(&event);
  if (!other || &other->context == &context_) return;
  VkSemaphoreWaitInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &other->semaphore;
  info.pValues = &other->value;
  other->context.check(other->context.f.WaitSemaphores(other->context.device, &info, UINT64_MAX),
                       "waiting for another device");
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
                concat("[", context_.name(), "] tensors of at most ", bytes_text(context_.max_binding()),
                       " besides weights, found ", bytes_text(bytes), "; a smaller batch or context may help"));
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
                concat("[", context_.name(), "] at most ", most[0], " x ", most[1], " x ", most[2], " workgroups, ",
                       shader, " needs ", grid.x, " x ", grid.y, " x ", grid.z));
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

std::unique_ptr<Recording> VulkanStream::make_recording(std::span<BoundNode> nodes) {
  start_recording();
  for (BoundNode& node : nodes) node.record->launch(*node.prepared, node.launch, *this);
  auto made = std::make_unique<Recording>(context_, pool_, pending_);
  pending_.clear();
  return made;
}

double VulkanStream::time(const std::function<void()>& launch) {
  start_recording();
  launch();
  Recording recording(context_, pool_, pending_);
  pending_.clear();
  synchronize();
  const auto start = std::chrono::steady_clock::now();
  for (const VkCommandBuffer commands : recording.commands()) submit(commands);
  synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The half that was not used for longest.
void VulkanStream::drop_old_recordings() {
  if (recordings_.size() < kRecordings) return;
  synchronize();
  std::vector<uint64_t> uses;
  for (const auto& [key, recording] : recordings_) uses.push_back(recording->last_use);
  std::nth_element(uses.begin(), uses.begin() + kRecordings / 2, uses.end());
  const uint64_t oldest = uses[kRecordings / 2];
  std::erase_if(recordings_, [&](const auto& entry) { return entry.second->last_use < oldest; });
}

void VulkanStream::run(uint64_t segment_key, std::span<BoundNode> nodes) {
  if (nodes.empty()) return;
  flush();
  const uint64_t key = key_of(segment_key, nodes);
  auto found = recordings_.find(key);
  if (found == recordings_.end()) {
    drop_old_recordings();
    found = recordings_.emplace(key, make_recording(nodes)).first;
  }
  Recording& recording = *found->second;
  if (recording.last_use > 0) wait_for(recording.last_use);  // a command buffer may not be under way twice
  for (const VkCommandBuffer commands : recording.commands()) submit(commands);
  recording.last_use = submitted_;
}

}  // namespace infer::vulkan
