#include "backends/cuda/runtime.h"

#include "ggml-like/error.h"

namespace infer::cuda {

bool is_lost(cudaError_t error) {
  switch (error) {
    case cudaErrorDevicesUnavailable:
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
      return true;
    default:
      return false;
  }
}

void check(cudaError_t error, const char* device, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // otherwise the next call would report it again
  if (error == cudaErrorMemoryAllocation) {
    throw Error(ErrorCode::kOutOfMemory, concat("[", device, "] ", what, ": out of device memory. Lower -ngl or -c."));
  }
  if (is_lost(error)) {
    throw Error(ErrorCode::kIo, concat("[", device, "] the device was lost: ", cudaGetErrorString(error), " (in ", what,
                                       "). Restart the program to use it again."));
  }
  throw Error(ErrorCode::kIo, concat("[", device, "] ", what, " failed: ", cudaGetErrorString(error)));
}

UseDevice::UseDevice(int number) {
  int before = 0;
  if (cudaGetDevice(&before) != cudaSuccess || before != number) cudaSetDevice(number);
}

}  // namespace infer::cuda
