// The memory of one CUDA device, and pinned memory of the host.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>

#include "backends/cuda/runtime.h"
#include "ggml-like/backend.h"

namespace infer::cuda {

// A device: what is known about it, and what its memory and streams share. It outlives them. Safe from any thread.
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
  // Device memory, of a pool whose memory is freed in the order of the streams' work. Drivers without such pools wait
  // for all work instead. allocate() returns null if there is too little.
  std::byte* allocate(size_t bytes);
  // `readers`: behind what other devices read of the memory.
  void free(std::byte* data, const std::set<std::shared_ptr<CUevent_st>>& readers);
  // Waits until the streams have done what is queued.
  void wait_for_streams();
  // Keeps other threads from using the streams on behalf of memory that they free, which during a capture would become
  // part of the graph. Whoever holds this frees nothing.
  std::unique_lock<std::mutex> hold_streams() { return std::unique_lock(mutex_); }
  // Bytes that the pool has for further allocations, when all that has been freed is there.
  uint64_t pooled() const;
  // The streams whose work may use the memory.
  void add(cudaStream_t stream);
  void remove(cudaStream_t stream);
  // Makes the memory of another device accessible for copies, where the two are connected.
  void reach(Context& other);

 private:
  OwnedMemPool pool_;   // null: there are none
  OwnedStream frees_;   // orders the pool's allocations
  OwnedEvent arrived_;  // marks a place in a stream
  std::mutex mutex_;    // of what follows
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
  // For kernels, or of the host's memory if it is pinned.
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
