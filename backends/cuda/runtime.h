// The CUDA runtime as the backend uses it: errors as exceptions, and handles that free themselves.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <type_traits>

namespace infer::cuda {

// Throws Error for anything but cudaSuccess: kOutOfMemory if memory ran out, else kIo. `device` is its name in
// messages, such as "cuda0".
void check(cudaError_t error, const char* device, const char* what);

// Whether the device is unusable after this error, because of a fault in a kernel or in the device.
bool is_lost(cudaError_t error);

// Selects the device for the runtime calls of this thread. Every caller of the runtime selects a device first; none
// restores the previous one, because that would create a context on a GPU that the program does not use.
struct UseDevice {
  explicit UseDevice(int number);
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
using OwnedMemPool = Owned<cudaMemPool_t, cudaMemPoolDestroy>;

}  // namespace infer::cuda
