#include "backends/cuda/memory.h"

#include <algorithm>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"

namespace infer::cuda {
namespace {

cudaMemLocation location_of(int device) {
  cudaMemLocation location = {};
  location.type = cudaMemLocationTypeDevice;
  location.id = device;
  return location;
}

std::byte* allocate_pinned(const Context& context, size_t bytes) {
  void* p = nullptr;
  const cudaError_t error = cudaHostAlloc(&p, bytes, cudaHostAllocDefault);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw Error(ErrorCode::kOutOfMemory,
                concat("[", context.name, "] ", bytes_text(bytes), " of host memory could not be pinned."));
  }
  context.check(error, "cudaHostAlloc");
  return static_cast<std::byte*>(p);
}

}  // namespace

Context::Context(int device, const std::string& device_name, const cudaDeviceProp& device_properties)
    : number(device), name(device_name), properties(device_properties) {
  const UseDevice use(number);
  int has_pools = 0;
  check(cudaDeviceGetAttribute(&has_pools, cudaDevAttrMemoryPoolsSupported, number), "cudaDeviceGetAttribute");
  if (!has_pools) return;
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  frees_.reset(stream);
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  arrived_.reset(event);
  cudaMemPoolProps props = {};
  props.allocType = cudaMemAllocationTypePinned;
  props.location = location_of(number);
  cudaMemPool_t pool = nullptr;
  if (cudaMemPoolCreate(&pool, &props) == cudaSuccess) pool_.reset(pool);
  else cudaGetLastError();  // virtual GPUs may report pools without having any
}

std::byte* Context::allocate(size_t bytes) {
  void* p = nullptr;
  cudaError_t error = pool_ ? cudaMallocFromPoolAsync(&p, bytes, pool_.get(), frees_.get()) : cudaMalloc(&p, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  check(error, pool_ ? "cudaMallocFromPoolAsync" : "cudaMalloc");
  if (pool_) check(cudaStreamSynchronize(frees_.get()), "cudaStreamSynchronize");  // other streams may use it now
  return static_cast<std::byte*>(p);
}

// Does not throw: what fails here is reported by the next use of the device.
void Context::free(std::byte* data, const std::set<std::shared_ptr<CUevent_st>>& readers) {
  if (!pool_) {
    for (const auto& event : readers) cudaEventSynchronize(event.get());
    cudaFree(data);  // waits until the device is idle
    return;
  }
  const std::lock_guard lock(mutex_);
  for (const auto& event : readers) cudaStreamWaitEvent(frees_.get(), event.get(), 0);
  for (const cudaStream_t stream : streams_) {
    cudaEventRecord(arrived_.get(), stream);
    cudaStreamWaitEvent(frees_.get(), arrived_.get(), 0);
  }
  cudaFreeAsync(data, frees_.get());
}

void Context::wait_for_streams() {
  const std::lock_guard lock(mutex_);
  for (const cudaStream_t stream : streams_) cudaStreamSynchronize(stream);
}

uint64_t Context::pooled() const {
  if (!pool_) return 0;
  check(cudaStreamSynchronize(frees_.get()), "cudaStreamSynchronize");
  uint64_t reserved = 0, in_use = 0;
  check(cudaMemPoolGetAttribute(pool_.get(), cudaMemPoolAttrReservedMemCurrent, &reserved), "cudaMemPoolGetAttribute");
  check(cudaMemPoolGetAttribute(pool_.get(), cudaMemPoolAttrUsedMemCurrent, &in_use), "cudaMemPoolGetAttribute");
  return reserved - std::min(reserved, in_use);
}

void Context::add(cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  streams_.insert(stream);
}

void Context::remove(cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  streams_.erase(stream);
}

void Context::reach(Context& other) {
  const std::lock_guard lock(mutex_);
  if (!reached_.insert(other.number).second) return;
  int connected = 0;
  check(cudaDeviceCanAccessPeer(&connected, number, other.number), "cudaDeviceCanAccessPeer");
  if (!connected) return;
  const UseDevice use(number);
  const cudaError_t error = cudaDeviceEnablePeerAccess(other.number, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled) cudaGetLastError();
  else check(error, "cudaDeviceEnablePeerAccess");
  if (!other.pool_) return;
  cudaMemAccessDesc access = {};
  access.location = location_of(number);
  access.flags = cudaMemAccessFlagsProtReadWrite;
  check(cudaMemPoolSetAccess(other.pool_.get(), &access, 1), "cudaMemPoolSetAccess");
}

CudaBuffer::CudaBuffer(Context& context, size_t bytes, Kind kind) : context_(context), bytes_(bytes), kind_(kind) {
  const UseDevice use(context.number);
  const size_t room = std::max<size_t>(bytes, 1);  // null would be an error, not an empty buffer
  if (kind == Kind::kPinned) {
    data_ = allocate_pinned(context, room);
    return;
  }
  const bool fits = context.budget == 0 || context.used + bytes <= context.budget;
  data_ = fits ? context.allocate(room) : nullptr;
  if (!data_) {
    throw Error(ErrorCode::kOutOfMemory,
                concat("[", context.name, "] ", bytes_text(bytes), " could not be allocated; ",
                       bytes_text(memory_state(context).free), " of device memory is free. Lower -ngl or -c."));
  }
  context.used += bytes;
}

// NVIDIA does not document whether cudaFreeHost waits for copies in progress.
CudaBuffer::~CudaBuffer() {
  const UseDevice use(context_.number);
  if (kind_ == Kind::kPinned) {
    context_.wait_for_streams();
    cudaFreeHost(data_);
  } else {
    context_.free(data_, readers_);
    context_.used -= bytes_;
  }
}

DeviceMemory memory_state(const Context& context) {
  const UseDevice use(context.number);
  size_t free = 0, total = 0;
  const uint64_t pooled = context.pooled();
  context.check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  free = std::min<size_t>(total, free + pooled);
  if (context.budget == 0) return {total, free};
  const uint64_t most = std::min<uint64_t>(context.budget, total), used = context.used;
  return {most, std::min<uint64_t>(free, most - std::min(most, used))};
}

}  // namespace infer::cuda
