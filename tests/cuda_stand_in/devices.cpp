// The runtime API: errors and devices.
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "cuda_runtime.h"
#include "tests/cuda_stand_in/device_memory.h"
#include "tests/cuda_stand_in/failure.h"
#include "tests/cuda_stand_in/grid.h"
#include "tests/cuda_stand_in/settings.h"
#include "tests/cuda_stand_in/state.h"

namespace cuda_stand_in {
namespace {

constexpr int kRuntimeVersion = 13000;

cudaError_t last_error = cudaSuccess;
// The error of a kernel that did something wrong; as on a GPU, nothing works afterwards.
cudaError_t sticky = cudaSuccess;
std::string& failure = *new std::string;
thread_local int current = 0;

cudaError_t machine_error() {
  if (settings().driver < kRuntimeVersion / 1000 * 1000) return cudaErrorInsufficientDriver;
  return settings().devices > 0 ? cudaSuccess : cudaErrorNoDevice;
}
bool is_device(int device) { return device >= 0 && device < settings().devices; }

}  // namespace

std::recursive_mutex lock;

cudaError_t result(cudaError_t error) {
  if (sticky != cudaSuccess) error = sticky;
  if (error != cudaSuccess) last_error = error;
  return error;
}
bool has_failed() { return sticky != cudaSuccess; }
void set_failure(cudaError_t error, const std::string& what) {
  sticky = error;
  failure = what;
}
int current_device() { return current; }

bool fails_now() {
  static int64_t n_allocations = 0;
  if (++n_allocations != settings().fail_allocation) return false;
  std::fprintf(stderr, "cuda stand-in: allocation %lld fails\n", static_cast<long long>(n_allocations));
  return true;
}

std::string take_failure() {
  const Guard guard(lock);
  last_error = sticky = cudaSuccess;
  return std::exchange(failure, "");
}

}  // namespace cuda_stand_in

using namespace cuda_stand_in;

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    default:
      return "cudaErrorUnknown";
  }
}
const char* cudaGetErrorString(cudaError_t error) {
  const Guard guard(lock);
  if (error == sticky && !failure.empty()) return failure.c_str();
  return error == cudaErrorMemoryAllocation ? "out of memory" : cudaGetErrorName(error);
}
cudaError_t cudaGetLastError() {
  const Guard guard(lock);
  return sticky != cudaSuccess ? sticky : std::exchange(last_error, cudaSuccess);
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = settings().devices;
  return result(machine_error());
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  if (!is_device(device)) return result(cudaErrorInvalidDevice);
  *p = {};
  std::strcpy(p->name, "stand-in");
  p->totalGlobalMem = settings().memory_bytes;
  p->sharedMemPerBlock = 48 << 10;
  p->sharedMemPerBlockOptin = kMostShared;
  p->major = settings().major;
  p->minor = settings().minor;
  p->multiProcessorCount = 4;
  p->l2CacheSize = 4 << 20;
  for (size_t i = 0; i < sizeof p->uuid.bytes; ++i) {
    p->uuid.bytes[i] = static_cast<char>(std::stoi(settings().uuid.substr(2 * i, 2), nullptr, 16));
  }
  p->uuid.bytes[15] = static_cast<char>(p->uuid.bytes[15] + device);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrMemoryPoolsSupported && settings().pools ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (!is_device(device)) return result(cudaErrorInvalidDevice);
  current = device;
  return result(cudaSuccess);
}
cudaError_t cudaGetDevice(int* device) {
  *device = current;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  const Guard guard(lock);
  drain_all();
  return result(cudaSuccess);
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = settings().driver;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kRuntimeVersion;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const Guard guard(lock);
  *free = memory_free(current);
  *total = settings().memory_bytes;
  return result(cudaSuccess);
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (!is_device(device) || !is_device(peer)) return result(cudaErrorInvalidDevice);
  *can = device != peer;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  return result(is_device(peer) && peer != current ? cudaSuccess : cudaErrorInvalidDevice);
}
