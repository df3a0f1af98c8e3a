// The language of kernels: CUDA C++, with functions for whatever needs PTX or declarations that C++ does not have. The
// tests compile the same kernels as C++ with a stand-in for these functions (tests/cuda_stand_in), so kernels must use
// nothing else that only nvcc supports. For .cu and .cuh files.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#ifdef __CUDACC__
#include "backends/cuda/machine.cuh"
#else
#include <cuda_stand_in_machine.h>
#endif

// Unrolls a loop with a constant trip count, so that the arrays which it indexes stay in registers.
#ifdef __CUDACC__
#define INFER_UNROLL _Pragma("unroll")
#else
#define INFER_UNROLL
#endif

namespace infer::cuda {

inline constexpr unsigned kWarp = 32;       // lanes
inline constexpr unsigned kAllLanes = ~0u;  // of a warp

// The sum of a value over a warp: the same tree for any kernel, with the result in all lanes.
__device__ inline float warp_sum(float x) {
  for (int lanes = 16; lanes > 0; lanes /= 2) x += __shfl_xor_sync(kAllLanes, x, lanes);
  return x;
}
__device__ inline float warp_max(float x) {
  for (int lanes = 16; lanes > 0; lanes /= 2) x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, lanes));
  return x;
}

// Shared memory for reductions over a block of at most 32 warps.
struct BlockReduction {
  float parts[kWarp];
};
// The sum over a block whose number of threads is a multiple of 32, in all threads. Every thread must call it.
__device__ inline float block_sum(float x) {
  x = warp_sum(x);
  if (blockDim.x <= kWarp) return x;
  BlockReduction& room = shared_memory<BlockReduction>();
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  __syncthreads();  // an earlier reduction has been read
  if (lane == 0) room.parts[warp] = x;
  __syncthreads();
  return warp_sum(lane < blockDim.x / kWarp ? room.parts[lane] : 0.0f);
}
__device__ inline float block_max(float x) {
  x = warp_max(x);
  if (blockDim.x <= kWarp) return x;
  BlockReduction& room = shared_memory<BlockReduction>();
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  __syncthreads();
  if (lane == 0) room.parts[warp] = x;
  __syncthreads();
  return warp_max(lane < blockDim.x / kWarp ? room.parts[lane] : -INFINITY);
}

}  // namespace infer::cuda
