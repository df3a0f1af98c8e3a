// The memory of one CUDA device, and pinned memory of the host.
#pragma once

#include <atomic>
#include <cstdint>

#include "backends/cuda/runtime.h"
#include "ggml-like/backend.h"

namespace infer::cuda {

// What is known about a device. Its memory and streams share it; it outlives them.
struct Context {
  int number;
  std::string name;  // "cuda0"
  cudaDeviceProp properties = {};
  bool deterministic = false;
  uint64_t budget = 0;  // bytes of memory that may be used, a limit for tests; 0: all
  std::atomic<uint64_t> used = 0;

  void check(cudaError_t error, const char* what) const { cuda::check(error, name.c_str(), what); }
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
  bool is_pinned() const { return kind_ == Kind::kPinned; }

 private:
  Context& context_;
  const size_t bytes_;
  const Kind kind_;
  std::byte* data_ = nullptr;
};

DeviceMemory memory_state(const Context& context);

}  // namespace infer::cuda
