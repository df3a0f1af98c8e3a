// The copies of a stream: between the host, the device's memory and staging buffers.
#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/vulkan/stream.h"
#include "ggml-like/error.h"

namespace infer::vulkan {
namespace {

constexpr uint64_t kStaging = 4 << 20;  // bytes of a staging buffer
// The most staging buffers for each direction; fewer for downloads, which the host waits for anyway.
constexpr size_t kUploads = 8, kDownloads = 3;
constexpr uint64_t kNotSubmitted = UINT64_MAX;  // Staging::last_use until its copies are submitted

}  // namespace

VkCommandBuffer VulkanStream::open_transfer() {
  if (open_) return open_->commands;
  const DeviceFunctions& f = context_.f;
  const uint64_t reached = done();
  Transfer* free = nullptr;
  for (Transfer& t : transfers_) {
    if (t.last_use <= reached) free = &t;
  }
  if (!free) {
    VkCommandBufferAllocateInfo allocation = {};
    allocation.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    allocation.commandPool = pool_;
    allocation.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocation.commandBufferCount = 1;
    Transfer made;
    context_.check(f.AllocateCommandBuffers(context_.device, &allocation, &made.commands), "vkAllocateCommandBuffers");
    transfers_.push_back(made);
    free = &transfers_.back();
  }
  VkCommandBufferBeginInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  context_.check(f.BeginCommandBuffer(free->commands, &info), "vkBeginCommandBuffer");
  full_barrier(f, free->commands);
  open_hazards_.clear();
  open_ = free;
  return open_->commands;
}

VkCommandBuffer VulkanStream::close_transfer() {
  if (!open_) return nullptr;
  Transfer* transfer = std::exchange(open_, nullptr);
  full_barrier(context_.f, transfer->commands);
  context_.check(context_.f.EndCommandBuffer(transfer->commands), "vkEndCommandBuffer");
  transfer->last_use = submitted_ + 1;
  for (std::deque<Staging>* ring : {&uploads_, &downloads_}) {
    for (Staging& staging : *ring) {
      if (staging.last_use == kNotSubmitted) staging.last_use = submitted_ + 1;
    }
  }
  return transfer->commands;
}

void VulkanStream::flush() {
  if (const VkCommandBuffer copies = close_transfer()) submit({&copies, 1});
}

void VulkanStream::copy_range(const Operand& from, const Operand& to) {
  const VkCommandBuffer commands = open_transfer();
  const Operand both[] = {from, to};
  if (open_hazards_.touch(both)) full_barrier(context_.f, commands);
  const VkBufferCopy region = {from.offset, to.offset, from.range};
  context_.f.CmdCopyBuffer(commands, from.handle, to.handle, 1, &region);
}

// Returns the front staging buffer, which has room: the one in use, one whose copies are done, or a new one. Waits for
// one only if there are too many.
VulkanStream::Staging& VulkanStream::staging_with_room(std::deque<Staging>& ring, Memory::Use use) {
  if (!ring.empty() && ring.front().used < ring.front().piece.bytes) return ring.front();
  flush();
  const bool downloads = use == Memory::Use::kReadback;
  const bool reuse = !ring.empty() && (downloads ? ring.size() >= kDownloads : ring.back().last_use <= done());
  if (!reuse && ring.size() < kUploads) {
    ring.push_front({memory_.allocate(kStaging, use)});
    return ring.front();
  }
  std::rotate(ring.begin(), ring.end() - 1, ring.end());
  if (downloads) synchronize();  // its contents must be delivered first
  else wait_for(ring.front().last_use);
  ring.front().used = 0;
  return ring.front();
}

void VulkanStream::upload(Buffer& to, size_t offset, const void* from, size_t bytes) {
  const VulkanBuffer& buffer = static_cast<VulkanBuffer&>(to);
  CHECK_INTERNAL(offset + bytes <= buffer.size());
  const auto* source = static_cast<const std::byte*>(from);
  for (size_t i = 0; i < buffer.pieces().size(); ++i) {
    // Pieces overlap: bytes that are in two pieces are copied to both.
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
      Staging& staging = staging_with_room(uploads_, Memory::Use::kUpload);
      const uint64_t n = std::min(stop - at, staging.piece.bytes - staging.used);
      std::memcpy(staging.piece.mapped + staging.used, source + (at - offset), n);
      copy_range({staging.piece.buffer, staging.piece.offset + staging.used, n, false},
                 {piece.buffer, piece.offset + (at - start), n, true});
      staging.used = std::min(staging.piece.bytes, (staging.used + n + 63) / 64 * 64);
      staging.last_use = kNotSubmitted;
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
      Staging& staging = staging_with_room(downloads_, Memory::Use::kReadback);
      n = std::min(n, staging.piece.bytes - staging.used);
      copy_range({piece.buffer, piece.offset + (at - start), n, false},
                 {staging.piece.buffer, staging.piece.offset + staging.used, n, true});
      deliveries_.push_back({target + (at - offset), staging.piece.mapped + staging.used, n});
      staging.used = std::min(staging.piece.bytes, (staging.used + n + 63) / 64 * 64);
      staging.last_use = kNotSubmitted;
    }
    at += n;
  }
}

void VulkanStream::copy(std::span<const CopyRange> ranges) {
  const auto part = [](const Buffer& b, size_t offset, size_t bytes) {
    const auto& buffer = static_cast<const VulkanBuffer&>(b);
    const size_t i = buffer.piece_at(offset);
    Piece piece = buffer.pieces()[i];
    const uint64_t skipped = offset - i * buffer.step();
    CHECK_INTERNAL(skipped + bytes <= piece.bytes);
    piece.offset += skipped;
    piece.bytes = bytes;
    if (piece.mapped) piece.mapped += skipped;
    return piece;
  };
  for (const CopyRange& r : ranges) {
    const Piece from = part(*r.from, r.from_offset, r.bytes), to = part(*r.to, r.to_offset, r.bytes);
    if (from.mapped && to.mapped && from.coherent && to.coherent && idle()) {
      std::memcpy(to.mapped, from.mapped, r.bytes);
    } else {
      copy_range({from.buffer, from.offset, from.bytes, false}, {to.buffer, to.offset, to.bytes, true});
    }
  }
}

void VulkanStream::deliver() {
  for (const Delivery& d : deliveries_) std::memcpy(d.to, d.from, d.bytes);
  deliveries_.clear();
  for (std::deque<Staging>* ring : {&uploads_, &downloads_}) {
    for (Staging& staging : *ring) staging.used = 0;
  }
}

}  // namespace infer::vulkan
