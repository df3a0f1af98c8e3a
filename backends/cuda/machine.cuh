// The functions of kernel.h for a GPU.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace infer::cuda {

__device__ __forceinline__ float half_to_float(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
// Round to nearest, ties to even.
__device__ __forceinline__ uint16_t float_to_half(float x) { return __half_as_ushort(__float2half_rn(x)); }
__device__ __forceinline__ uint16_t float_to_bfloat(float x) { return __bfloat16_as_ushort(__float2bfloat16_rn(x)); }

// One object of type T per block, shared by its threads; not initialized.
template <typename T>
__device__ __forceinline__ T& shared_memory() {
  __shared__ __align__(16) unsigned char bytes[sizeof(T)];
  return *reinterpret_cast<T*>(bytes);
}

// The memory that a launch asks for in bytes, for each block; not initialized.
__device__ __forceinline__ void* dynamic_shared_memory() {
  extern __shared__ __align__(16) unsigned char dynamic_bytes[];
  return dynamic_bytes;
}

}  // namespace infer::cuda
