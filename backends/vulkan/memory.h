// The memory of one Vulkan device: its heap, how much of it is used, and its buffers. One thread at a time.
//
// A buffer that is larger than the driver's largest allocation consists of several pieces that overlap by kOverlap
// bytes, so that every row of a weight is in one piece; such a buffer is written only by uploads. Small buffers share
// an allocation, because drivers limit the number of allocations.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <vector>

#include "backends/vulkan/context.h"
#include "ggml-like/backend.h"

namespace infer::vulkan {

class Memory;

// Part of a VkBuffer.
struct Piece {
  VkBuffer buffer = nullptr;
  VkDeviceMemory memory = nullptr;
  uint64_t offset = 0, bytes = 0;
  std::byte* mapped = nullptr;  // the address of `offset`; null if the host cannot access it
  bool counted = false;         // counted as used device memory, unlike staging buffers
  bool coherent = true;         // if false, the host sees the device's writes after see_readback()
};

// The memory types to use, by their index in the device's list; kNoMemoryType if there is none.
inline constexpr uint32_t kNoMemoryType = UINT32_MAX;
struct DeviceMemoryType {
  uint32_t index = kNoMemoryType;
  bool unified = false;  // the host can access it, through its caches
};
// For tensors. `integrated`: the device shares the host's memory; `unified`: the host may access it directly.
DeviceMemoryType device_memory_type(const VkPhysicalDeviceMemoryProperties& memory, bool integrated, bool unified);
// For staging buffers, among the types in the mask `allowed`.
uint32_t upload_memory_type(const VkPhysicalDeviceMemoryProperties& memory, uint32_t allowed);
uint32_t readback_memory_type(const VkPhysicalDeviceMemoryProperties& memory, uint32_t allowed);

class VulkanBuffer final : public Buffer {
 public:
  // In the device's memory, or in staging memory (Memory::Use::kReadback).
  VulkanBuffer(Memory& memory, size_t bytes, bool staging = false);
  ~VulkanBuffer() override;
  size_t size() const override { return bytes_; }
  std::byte* host() const override { return pieces_.size() == 1 ? pieces_[0].mapped : nullptr; }

  const std::vector<Piece>& pieces() const { return pieces_; }
  uint64_t step() const { return step_; }  // bytes from the start of a piece to the start of the next
  // The piece that holds rows that start at `offset`.
  size_t piece_at(uint64_t offset) const;

 private:
  Memory& memory_;
  const size_t bytes_;
  std::vector<Piece> pieces_;
  uint64_t step_ = 0;
};

class Memory {
 public:
  enum class Use { kDevice, kUpload, kReadback };
  static constexpr uint64_t kOverlap = 1 << 20;

  explicit Memory(Context& context);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Throws Error(kOutOfMemory).
  Piece allocate(uint64_t bytes, Use use);
  void free(const Piece& piece);
  // Makes the device's writes to staging memory visible to the host.
  void see_readback() const;
  DeviceMemory state() const;
  bool unified() const { return unified_; }
  uint64_t max_piece() const;
  Context& context() const { return context_; }
  int live_allocations() const { return live_; }

 private:
  // An allocation that small pieces share; `free` maps offsets to bytes.
  struct Chunk {
    Piece all;
    std::map<uint64_t, uint64_t> free;
    bool empty() const { return free.size() == 1 && free.begin()->second == all.bytes; }
  };
  Piece allocate_alone(uint64_t bytes, Use use);
  void free_alone(const Piece& piece);
  bool take_small(Chunk& chunk, uint64_t bytes, Piece& piece) const;
  uint32_t type_for(Use use, uint32_t allowed) const;
  uint64_t budget() const;

  Context& context_;
  const uint64_t budget_;  // a limit for tests; 0: none
  int fail_at_, calls_ = 0, live_ = 0;
  uint32_t device_type_ = 0;  // index of the memory type of kDevice
  bool unified_ = false;      // the host can access that memory
  uint64_t used_ = 0;         // bytes allocated from the device's heap
  std::list<Chunk> chunks_;
  std::vector<VkDeviceMemory> readback_;  // allocations of kReadback that are not coherent
};

}  // namespace infer::vulkan
