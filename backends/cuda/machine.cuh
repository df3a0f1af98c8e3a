// The functions of kernel.h for a GPU.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace infer::cuda {

// Blocks per multiprocessor for which kernels with much shared memory are compiled.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int kBlocksAtOnce = 1;
#else
constexpr int kBlocksAtOnce = 2;
#endif

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

// The dynamic shared memory of a block, of the size given at the launch; not initialized.
__device__ __forceinline__ void* dynamic_shared_memory() {
  extern __shared__ __align__(16) unsigned char dynamic_bytes[];
  return dynamic_bytes;
}

// 16 bytes at an address that is a multiple of 16.
__device__ __forceinline__ uint4 load_vector(const void* p) { return *static_cast<const uint4*>(p); }
__device__ __forceinline__ void store_vector(void* p, uint4 v) { *static_cast<uint4*>(p) = v; }

// Asynchronous copies to shared memory: 16 bytes each, both addresses multiples of 16; zeros unless `present`. Copies
// queued by a thread until commit_copies() are a group. After wait_copies<n>() all but the thread's n last groups have
// arrived, visible to the thread itself, and to others after a barrier. Below compute capability 8.0, copies are
// synchronous.
__device__ __forceinline__ void copy_async(void* to, const void* from, bool present) {
#if __CUDA_ARCH__ >= 800
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(present ? 16 : 0)
               : "memory");
#else
  store_vector(to, present ? load_vector(from) : make_uint4(0, 0, 0, 0));
#endif
}
__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int kGroups>
__device__ __forceinline__ void wait_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
#endif
}

// Four matrices of 8 by 8 fp16 values from shared memory: lane l gives the address of row l % 8 of matrix l / 8, 16
// bytes at a multiple of 16. Of each matrix, lane 4 * g + t gets (g, 2t) and (g, 2t + 1); transposed, (2t, g) and (2t +
// 1, g). PTX ISA, ldmatrix.
__device__ __forceinline__ void load_matrices(uint32_t (&to)[4], const void* row) {
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared)
               : "memory");
}
__device__ __forceinline__ void load_transposed(uint32_t (&to)[4], const void* row) {
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared)
               : "memory");
}

// 2^x with a relative error of 2^-22; results below 2^-126 become zero.
__device__ __forceinline__ float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Two floats as fp16, `low` in the low half of the word.
__device__ __forceinline__ uint32_t pack_halves(float low, float high) {
  const __half2 both = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&both);
}

// c += a * b by a warp: a [16, 16] and b [16, 8] are fp16, c [16, 8] floats. With lane = 4 * g + t, a lane holds of a
// (g, 2t), (g + 8, 2t), (g, 2t + 8) and (g + 8, 2t + 8), each with its right neighbour; of b (2t, g) and (2t + 8, g),
// each with the one below; of c (g, 2t), (g, 2t + 1), (g + 8, 2t) and (g + 8, 2t + 1). PTX ISA, mma.m16n8k16.
__device__ __forceinline__ void multiply_add(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  for (int i = 0; i < 2; ++i) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[2 * i]), "r"(a[2 * i + 1]), "r"(b[i]));
  }
#endif
}

}  // namespace infer::cuda
