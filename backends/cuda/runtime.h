// The CUDA runtime as the backend uses it: errors as exceptions, and handles that free themselves.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <type_traits>

namespace infer::cuda {

// Throws Error for anything but cudaSuccess: kOutOfMemory where memory is missing, else kIo. `device` is its name in
// messages, such as "cuda0".
void check(cudaError_t error, const char* device, const char* what);

// Whether nothing works on the device after this error: a kernel made a mistake, or the device failed.
bool is_lost(cudaError_t error);

// Makes the device with this number the one that the runtime's calls of this thread are about. Who calls the runtime
// chooses a device first: going back to the one before would create what a program needs on a GPU that it does not use.
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
