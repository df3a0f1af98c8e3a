#include "backends/vulkan/memory.h"

#include <algorithm>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"

namespace infer::vulkan {
namespace {

constexpr uint64_t kChunk = 8 << 20, kSmall = 1 << 20;
constexpr uint64_t kMemoryAlignment = 256;  // the largest minStorageBufferOffsetAlignment that Vulkan allows

uint64_t aligned(uint64_t bytes) { return (bytes + kMemoryAlignment - 1) / kMemoryAlignment * kMemoryAlignment; }

constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                kMappable = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
                                kVisible = kMappable | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                                kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
// Types that need a device feature, or are slow.
constexpr VkMemoryPropertyFlags kSpecial = VK_MEMORY_PROPERTY_PROTECTED_BIT | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT |
                                           VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD |
                                           VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD |
                                           VK_MEMORY_PROPERTY_RDMA_CAPABLE_BIT_NV;

uint64_t heap_of(const VkPhysicalDeviceMemoryProperties& memory, uint32_t type) {
  return type == kNoMemoryType ? 0 : memory.memoryHeaps[memory.memoryTypes[type].heapIndex].size;
}

// Among the types with all of `wanted` and none of `unwanted`, the first in the largest heap.
uint32_t find_type(const VkPhysicalDeviceMemoryProperties& memory, uint32_t allowed, VkMemoryPropertyFlags wanted,
                   VkMemoryPropertyFlags unwanted) {
  uint32_t found = kNoMemoryType;
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
    if (!(allowed >> i & 1) || (flags & wanted) != wanted || (flags & (unwanted | kSpecial))) continue;
    if (heap_of(memory, i) > heap_of(memory, found)) found = i;
  }
  return found;
}

}  // namespace

DeviceMemoryType device_memory_type(const VkPhysicalDeviceMemoryProperties& memory, bool integrated, bool unified) {
  const uint32_t both = integrated && unified ? find_type(memory, ~0u, kLocal | kVisible | kCached, 0) : kNoMemoryType;
  uint32_t own = find_type(memory, ~0u, kLocal, kMappable);
  if (own == kNoMemoryType) own = find_type(memory, ~0u, kLocal, 0);
  if (integrated) {
    // Firmware may reserve only a little memory for the GPU, which can access the rest as well. The type is uncached,
    // because memory that the host caches is slower on some GPUs.
    const uint32_t rest = find_type(memory, ~0u, kVisible, kCached), local = find_type(memory, ~0u, kLocal, 0);
    const uint64_t most = std::max(heap_of(memory, both), heap_of(memory, local));
    if (heap_of(memory, rest) / 2 > most) return {rest, false};
    if (heap_of(memory, local) / 2 > heap_of(memory, both)) return {local, false};
  }
  // Never uncached memory: the host would read results from it very slowly.
  return both != kNoMemoryType ? DeviceMemoryType{both, true} : DeviceMemoryType{own, false};
}

uint32_t upload_memory_type(const VkPhysicalDeviceMemoryProperties& memory, uint32_t allowed) {
  const uint32_t type = find_type(memory, allowed, kVisible, kLocal);
  return type != kNoMemoryType ? type : find_type(memory, allowed, kVisible, 0);
}

uint32_t readback_memory_type(const VkPhysicalDeviceMemoryProperties& memory, uint32_t allowed) {
  uint32_t type = find_type(memory, allowed, kVisible | kCached, 0);
  if (type == kNoMemoryType) type = find_type(memory, allowed, kMappable | kCached, 0);
  return type != kNoMemoryType ? type : upload_memory_type(memory, allowed);
}

Memory::Memory(Context& context)
    : context_(context),
      budget_(context.options.budget ? context.options.budget : environment_number("INFER_VULKAN_BUDGET_MB") << 20),
      fail_at_(context.options.fail_allocation ? context.options.fail_allocation
                                               : static_cast<int>(environment_number("INFER_VULKAN_FAIL_ALLOCATION"))) {
  const VkPhysicalDeviceMemoryProperties& memory = context.physical.memory;
  const bool shared = context.physical.type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ||
                      context.physical.type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  const DeviceMemoryType type = device_memory_type(memory, shared, context.options.unified_memory);
  device_type_ = type.index;
  unified_ = type.unified;
  if (device_type_ == kNoMemoryType) {
    throw Error(ErrorCode::kUnsupported,
                concat("[", context.name(), "] expected a memory type for tensors, found none"));
  }
}

Memory::~Memory() {
  for (const Chunk& chunk : chunks_) free_alone(chunk.all);
}

uint64_t Memory::max_piece() const {
  // Offsets in shaders are 32 bits.
  const uint64_t own = std::min({context_.physical.max_allocation, context_.physical.max_buffer, uint64_t{0xfffff000}});
  return (context_.options.max_allocation ? std::min(own, context_.options.max_allocation) : own) / kMemoryAlignment *
         kMemoryAlignment;
}

uint64_t Memory::budget() const {
  const VkPhysicalDeviceMemoryProperties& memory = context_.physical.memory;
  const uint64_t heap = memory.memoryHeaps[memory.memoryTypes[device_type_].heapIndex].size;
  return budget_ ? std::min(heap, budget_) : heap;
}

DeviceMemory Memory::state() const {
  const uint64_t total = budget();
  uint64_t free = total > used_ ? total - used_ : 0;
  if (context_.physical.memory_budget) {
    VkPhysicalDeviceMemoryBudgetPropertiesEXT now = {};
    now.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
    VkPhysicalDeviceMemoryProperties2 memory = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, &now, {}};
    instance().functions.GetPhysicalDeviceMemoryProperties2(context_.physical.handle, &memory);
    const uint32_t heap = context_.physical.memory.memoryTypes[device_type_].heapIndex;
    const uint64_t left = now.heapBudget[heap] > now.heapUsage[heap] ? now.heapBudget[heap] - now.heapUsage[heap] : 0;
    free = std::min(free, left);
  }
  // The device memory of a software renderer is host memory.
  if (context_.physical.is_software()) free = std::min(free, host_memory().free);
  return {total, free};
}

uint32_t Memory::type_for(Use use, uint32_t allowed) const {
  const VkPhysicalDeviceMemoryProperties& memory = context_.physical.memory;
  if (use == Use::kUpload) return upload_memory_type(memory, allowed);
  if (use == Use::kReadback) return readback_memory_type(memory, allowed);
  return allowed >> device_type_ & 1 ? device_type_ : find_type(memory, allowed, kLocal, 0);
}

void Memory::see_readback() const {
  for (VkDeviceMemory memory : readback_) {
    VkMappedMemoryRange range = {};
    range.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE;
    range.memory = memory;
    range.size = VK_WHOLE_SIZE;
    context_.check(context_.f.InvalidateMappedMemoryRanges(context_.device, 1, &range),
                   "vkInvalidateMappedMemoryRanges");
  }
}

Piece Memory::allocate_alone(uint64_t bytes, Use use) {
  const DeviceFunctions& f = context_.f;
  const auto fail = [&](const std::string& why) {
    return Error(ErrorCode::kOutOfMemory,
                 concat("[", context_.name(), "] expected ", bytes_text(bytes), " of memory, found ", why));
  };
  if (++calls_ == fail_at_) throw fail("a simulated failure");
  if (use == Use::kDevice && budget_ && used_ + bytes > budget_) {
    throw fail(concat(bytes_text(budget_ - std::min(budget_, used_)), " left of ", bytes_text(budget_)));
  }
  Piece piece;
  piece.bytes = bytes;
  VkBufferCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  context_.check(f.CreateBuffer(context_.device, &info, nullptr, &piece.buffer), "vkCreateBuffer");
  VkMemoryRequirements needs = {};
  f.GetBufferMemoryRequirements(context_.device, piece.buffer, &needs);
  VkMemoryAllocateInfo allocation = {};
  allocation.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocation.allocationSize = needs.size;
  allocation.memoryTypeIndex = type_for(use, needs.memoryTypeBits);
  VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  if (allocation.memoryTypeIndex != kNoMemoryType) {
    result = f.AllocateMemory(context_.device, &allocation, nullptr, &piece.memory);
  }
  if (result == VK_SUCCESS) result = f.BindBufferMemory(context_.device, piece.buffer, piece.memory, 0);
  if (result == VK_SUCCESS && (use != Use::kDevice || unified_)) {
    void* mapped = nullptr;
    result = f.MapMemory(context_.device, piece.memory, 0, VK_WHOLE_SIZE, 0, &mapped);
    piece.mapped = static_cast<std::byte*>(mapped);
  }
  if (result != VK_SUCCESS) {
    f.DestroyBuffer(context_.device, piece.buffer, nullptr);
    if (piece.memory) f.FreeMemory(context_.device, piece.memory, nullptr);
    throw fail(concat(bytes_text(state().free), " free of ", bytes_text(state().total)));
  }
  piece.counted = use == Use::kDevice;
  const VkMemoryPropertyFlags flags = context_.physical.memory.memoryTypes[allocation.memoryTypeIndex].propertyFlags;
  piece.coherent = (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) && context_.options.coherent_memory;
  if (use == Use::kReadback && !piece.coherent) readback_.push_back(piece.memory);
  if (piece.counted) used_ += bytes;
  ++live_;
  return piece;
}

void Memory::free_alone(const Piece& piece) {
  context_.f.DestroyBuffer(context_.device, piece.buffer, nullptr);
  context_.f.FreeMemory(context_.device, piece.memory, nullptr);
  std::erase(readback_, piece.memory);
  if (piece.counted) used_ -= piece.bytes;
  --live_;
}

bool Memory::take_small(Chunk& chunk, uint64_t bytes, Piece& piece) const {
  for (auto at = chunk.free.begin(); at != chunk.free.end(); ++at) {
    const auto [offset, room] = *at;
    if (room < bytes) continue;
    chunk.free.erase(at);
    if (room > bytes) chunk.free[offset + bytes] = room - bytes;
    piece = chunk.all;
    piece.offset = offset;
    piece.bytes = bytes;
    if (piece.mapped) piece.mapped += offset;
    return true;
  }
  return false;
}

Piece Memory::allocate(uint64_t bytes, Use use) {
  bytes = aligned(std::max<uint64_t>(bytes, 1));
  if (use != Use::kDevice || bytes > kSmall || kChunk > max_piece()) return allocate_alone(bytes, use);
  Piece piece;
  for (Chunk& chunk : chunks_) {
    if (take_small(chunk, bytes, piece)) return piece;
  }
  // When memory is short, a planned buffer still fits, but a whole chunk might not.
  if (state().free < 16 * kChunk) return allocate_alone(bytes, use);
  Chunk chunk{allocate_alone(kChunk, use), {{0, kChunk}}};
  take_small(chunk, bytes, piece);
  chunks_.push_back(std::move(chunk));
  return piece;
}

void Memory::free(const Piece& piece) {
  for (auto chunk = chunks_.begin(); chunk != chunks_.end(); ++chunk) {
    if (chunk->all.buffer != piece.buffer) continue;
    auto at = chunk->free.emplace(piece.offset, piece.bytes).first;
    if (const auto next = std::next(at); next != chunk->free.end() && at->first + at->second == next->first) {
      at->second += next->second;
      chunk->free.erase(next);
    }
    if (at != chunk->free.begin()) {
      const auto before = std::prev(at);
      if (before->first + before->second == at->first) {
        before->second += at->second;
        chunk->free.erase(at);
      }
    }
    if (chunk->empty() && chunks_.size() > 1) {
      free_alone(chunk->all);
      chunks_.erase(chunk);
    }
    return;
  }
  free_alone(piece);
}

VulkanBuffer::VulkanBuffer(Memory& memory, size_t bytes, bool staging) : memory_(memory), bytes_(bytes) {
  const uint64_t largest = memory.max_piece();
  if (bytes <= largest || staging) {
    step_ = std::max<uint64_t>(bytes, 1);
    pieces_.push_back(memory.allocate(bytes, staging ? Memory::Use::kReadback : Memory::Use::kDevice));
    return;
  }
  step_ = largest - Memory::kOverlap;
  try {
    for (uint64_t at = 0; at == 0 || at + Memory::kOverlap < bytes; at += step_) {
      pieces_.push_back(memory.allocate(std::min(largest, bytes - at), Memory::Use::kDevice));
    }
  } catch (const Error&) {
    for (const Piece& piece : pieces_) memory_.free(piece);
    throw;
  }
}

VulkanBuffer::~VulkanBuffer() {
  memory_.context().settle();  // work in progress may use it
  for (const Piece& piece : pieces_) memory_.free(piece);
}

size_t VulkanBuffer::piece_at(uint64_t offset) const { return std::min<size_t>(offset / step_, pieces_.size() - 1); }

}  // namespace infer::vulkan
