// The memory of one CUDA device, and pinned host memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>

#include "backends/cuda/runtime.h"
#include "ggml-like/backend.h"

namespace infer::cuda {

// A device: its properties, and what its memory and streams share. Outlives them. Safe from any thread.
class Context {
 public:
  // Throws Error if the device cannot be used.
  Context(int number, const std::string& name, const cudaDeviceProp& properties);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const int number;
  const std::string name;  // "cuda0"
  const cudaDeviceProp properties;
  bool deterministic = false;
  uint64_t budget = 0;  // bytes of memory that may be used, a limit for tests; 0: all
  std::atomic<uint64_t> used = 0;

  void check(cudaError_t error, const char* what) const { cuda::check(error, name.c_str(), what); }
  // Device memory from a pool, to which memory returns in stream order. On drivers without such pools, free() waits for
  // all work instead. allocate() returns null if there is too little.
  std::byte* allocate(size_t bytes);
  // `readers`: recorded after the last reads of the memory by other devices.
  void free(std::byte* data, const std::set<std::shared_ptr<CUevent_st>>& readers);
  // Waits until the streams have finished all queued work.
  void wait_for_streams();
  // Keeps other threads from queueing frees on the streams; during a capture these would become part of the graph. The
  // holder must not free anything.
  std::unique_lock<std::mutex> hold_streams() { return std::unique_lock(mutex_); }
  // Bytes that the pool can allocate without asking the driver, once all pending frees have completed.
  uint64_t pooled() const;
  // The streams whose work may use the memory.
  void add(cudaStream_t stream);
  void remove(cudaStream_t stream);
  // Enables direct copies from another device's memory, where the two are connected.
  void reach(Context& other);

 private:
  OwnedMemPool pool_;   // null: the driver has no pools
  OwnedStream frees_;   // orders the pool's allocations
  OwnedEvent arrived_;  // marks a place in a stream
  std::mutex mutex_;    // guards the members below
  std::set<cudaStream_t> streams_;
  std::set<int> reached_;
};

class CudaBuffer final : public Buffer {
 public:
  enum class Kind { kDevice, kPinned };
  // Throws Error(kOutOfMemory).
  CudaBuffer(Context& context, size_t bytes, Kind kind);
  ~CudaBuffer() override;
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;

  size_t size() const override { return bytes_; }
  std::byte* host() const override { return kind_ == Kind::kPinned ? data_ : nullptr; }
  // The device address, for kernels; the host address of pinned memory.
  std::byte* data() const { return data_; }
  Context& context() const { return context_; }
  bool is_pinned() const { return kind_ == Kind::kPinned; }
  // The device's memory is not used for anything else before this event of another device's stream. By one thread.
  void keep_until(std::shared_ptr<CUevent_st> event) const { readers_.insert(std::move(event)); }

 private:
  Context& context_;
  const size_t bytes_;
  const Kind kind_;
  std::byte* data_ = nullptr;
  mutable std::set<std::shared_ptr<CUevent_st>> readers_;  // one for each stream of another device
};

DeviceMemory memory_state(const Context& context);

}  // namespace infer::cuda
