#include "backends/cuda/runtime.h"

#include "ggml-like/error.h"

namespace infer::cuda {

void check(cudaError_t error, const char* device, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // otherwise the next call would report it again
  if (error == cudaErrorMemoryAllocation) {
    throw Error(ErrorCode::kOutOfMemory, concat("[", device, "] ", what, ": out of device memory"));
  }
  throw Error(ErrorCode::kIo, concat("[", device, "] ", what, " failed: ", cudaGetErrorString(error)));
}

UseDevice::UseDevice(int number) {
  cudaGetDevice(&before_);
  if (before_ != number) cudaSetDevice(number);
}

UseDevice::~UseDevice() { cudaSetDevice(before_); }

}  // namespace infer::cuda
