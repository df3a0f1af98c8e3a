// The CUDA runtime as the backend uses it: errors as exceptions, and handles that free themselves.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <type_traits>

namespace infer::cuda {

// Throws Error for anything but cudaSuccess: kOutOfMemory where memory is missing, else kIo. `device` is its name in
// messages, such as "cuda0".
void check(cudaError_t error, const char* device, const char* what);

// Makes the device with this number the one that the runtime's calls of this thread are about, until destroyed.
class UseDevice {
 public:
  explicit UseDevice(int number);
  ~UseDevice();
  UseDevice(const UseDevice&) = delete;
  UseDevice& operator=(const UseDevice&) = delete;

 private:
  int before_ = 0;
};

template <auto kDestroy>
struct Destroy {
  template <typename T>
  void operator()(T* handle) const {
    kDestroy(handle);
  }
};
template <typename Handle, auto kDestroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<kDestroy>>;
using OwnedStream = Owned<cudaStream_t, cudaStreamDestroy>;
using OwnedEvent = Owned<cudaEvent_t, cudaEventDestroy>;
using OwnedGraph = Owned<cudaGraph_t, cudaGraphDestroy>;
using OwnedGraphExec = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;

}  // namespace infer::cuda
