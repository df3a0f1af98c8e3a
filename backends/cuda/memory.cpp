#include "backends/cuda/memory.h"

#include <algorithm>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"

namespace infer::cuda {

CudaBuffer::CudaBuffer(Context& context, size_t bytes, Kind kind) : context_(context), bytes_(bytes), kind_(kind) {
  const UseDevice use(context.number);
  void* p = nullptr;
  const size_t room = std::max<size_t>(bytes, 1);  // null would be an error, not an empty buffer
  if (kind == Kind::kPinned) {
    context.check(cudaHostAlloc(&p, room, cudaHostAllocDefault), "allocating pinned memory");
  } else {
    const bool fits = context.budget == 0 || context.used + bytes <= context.budget;
    const cudaError_t error = fits ? cudaMalloc(&p, room) : cudaErrorMemoryAllocation;
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw Error(ErrorCode::kOutOfMemory,
                  concat("[", context.name, "] ", bytes_text(bytes), " could not be allocated; ",
                         bytes_text(memory_state(context).free), " of the device's memory are free"));
    }
    context.check(error, "cudaMalloc");
    context.used += bytes;
  }
  data_ = static_cast<std::byte*>(p);
}

// cudaFree and cudaFreeHost wait until the device has done its work.
CudaBuffer::~CudaBuffer() {
  const UseDevice use(context_.number);
  if (kind_ == Kind::kPinned) {
    cudaFreeHost(data_);
  } else {
    cudaFree(data_);
    context_.used -= bytes_;
  }
}

DeviceMemory memory_state(const Context& context) {
  const UseDevice use(context.number);
  size_t free = 0, total = 0;
  context.check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  if (context.budget == 0) return {total, free};
  const uint64_t most = std::min<uint64_t>(context.budget, total), used = context.used;
  return {most, std::min<uint64_t>(free, most - std::min(most, used))};
}

}  // namespace infer::cuda
