// The CUDA language for the stand-in: qualifiers, built-in variables and types, and the functions of a device. The
// functions that threads execute together have the caller's place as a hidden argument, for messages.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

// ---- Built-in types and variables ----

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

#define CUDA_STAND_IN_VECTORS(T, name, a2, a4)               \
  struct alignas(a2) name##2 {                               \
    T x, y;                                                  \
  };                                                         \
  struct alignas(a4) name##4 {                               \
    T x, y, z, w;                                            \
  };                                                         \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; } \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
CUDA_STAND_IN_VECTORS(float, float, 8, 16)
CUDA_STAND_IN_VECTORS(int, int, 8, 16)
CUDA_STAND_IN_VECTORS(unsigned, uint, 8, 16)
#undef CUDA_STAND_IN_VECTORS

// ---- What the threads of a block or warp do together ----

namespace cuda_stand_in {

using Place = std::source_location;

void barrier(Place place);                      // __syncthreads()
int barrier_sum(int value, Place place);        // the sum of all threads' values
void warp_barrier(unsigned mask, Place place);  // __syncwarp()
int lane();                                     // of the calling thread in its warp
// Gives `value` to the lanes in `mask`, which all call it.
void exchange(unsigned mask, uint64_t value, Place place);
uint64_t exchanged(int lane);  // what that lane gave in the last exchange
// mma.m16n8k16 of fp16 with sums in floats; the lanes' parts as in backends/cuda/machine.cuh.
void multiply_f16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Place place);
// One object per block: `key` identifies it, the first call allocates. Memory starts as bytes of 0xff.
void* shared_object(const void* key, size_t bytes);
void* dynamic_shared();
template <typename T>
T& shared_memory() {
  static_assert(std::is_trivially_default_constructible_v<T> && std::is_trivially_destructible_v<T>);
  static const char key = 0;
  return *static_cast<T*>(shared_object(&key, sizeof(T)));
}
// ldmatrix.x4 of 16-bit values, also transposed: the lanes' parts as in backends/cuda/machine.cuh.
void load_matrices(uint32_t (&to)[4], const void* row, bool transposed, Place place);
// cp.async: 16 bytes, or zeros without a source. Until the wait for its group, the target holds bytes of 0xff.
void queue_copy(void* to, const void* from);
void commit_copies();
void wait_copies(unsigned groups_left);
void store_aligned(void* address, const void* from, size_t bytes);
// A load at an address that has to be a multiple of the number of bytes.
void load_aligned(const void* address, void* to, size_t bytes);
// Parts of one indivisible operation of the calling thread.
void load_atomic(const void* address, void* to, size_t bytes);
void store_atomic(void* address, const void* from, size_t bytes);

template <typename T>
uint64_t to_bits(T value) {
  static_assert(sizeof(T) <= sizeof(uint64_t) && std::is_trivially_copyable_v<T>);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <typename T>
T from_bits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
// The value of the lane that `source` gives for the caller's lane; the caller's own where that is outside its segment.
template <typename T, typename Source>
T shuffle(unsigned mask, T value, int width, Source source, Place place) {
  exchange(mask, to_bits(value), place);
  const int mine = lane(), begin = mine / width * width, from = source(mine, begin);
  return from_bits<T>(exchanged(from < begin || from >= begin + width ? mine : from));
}
template <typename T, typename Combine>
T reduce(unsigned mask, T value, Combine combine, Place place) {
  exchange(mask, to_bits(value), place);
  bool first = true;
  T all{};
  for (int i = 0; i < warpSize; ++i) {
    if (!(mask >> i & 1)) continue;
    const T other = from_bits<T>(exchanged(i));
    all = first ? other : combine(all, other);
    first = false;
  }
  return all;
}
template <typename T, typename Change>
T atomic_change(T* address, Change change) {
  T old;
  load_atomic(address, &old, sizeof old);
  const T changed = change(old);
  store_atomic(address, &changed, sizeof changed);
  return old;
}

}  // namespace cuda_stand_in

#define CUDA_STAND_IN_PLACE cuda_stand_in::Place place = cuda_stand_in::Place::current()

inline void __syncthreads(CUDA_STAND_IN_PLACE) { cuda_stand_in::barrier(place); }
inline int __syncthreads_count(int predicate, CUDA_STAND_IN_PLACE) {
  return cuda_stand_in::barrier_sum(predicate != 0, place);
}
inline int __syncthreads_or(int predicate, CUDA_STAND_IN_PLACE) { return __syncthreads_count(predicate, place) > 0; }
inline int __syncthreads_and(int predicate, CUDA_STAND_IN_PLACE) { return __syncthreads_count(!predicate, place) == 0; }
inline void __syncwarp(unsigned mask = ~0u, CUDA_STAND_IN_PLACE) { cuda_stand_in::warp_barrier(mask, place); }
inline void __threadfence() {}
inline void __threadfence_block() {}

template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize, CUDA_STAND_IN_PLACE) {
  return cuda_stand_in::shuffle(
      mask, value, width, [&](int, int begin) { return begin + (source & (width - 1)); }, place);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = warpSize, CUDA_STAND_IN_PLACE) {
  return cuda_stand_in::shuffle(
      mask, value, width, [&](int mine, int) { return mine ^ bits; }, place);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize, CUDA_STAND_IN_PLACE) {
  return cuda_stand_in::shuffle(
      mask, value, width, [&](int mine, int) { return mine + static_cast<int>(delta); }, place);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize, CUDA_STAND_IN_PLACE) {
  return cuda_stand_in::shuffle(
      mask, value, width, [&](int mine, int) { return mine - static_cast<int>(delta); }, place);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, CUDA_STAND_IN_PLACE) {
  cuda_stand_in::exchange(mask, predicate != 0, place);
  unsigned votes = 0;
  for (int i = 0; i < warpSize; ++i) votes |= (mask >> i & 1) && cuda_stand_in::exchanged(i) ? 1u << i : 0u;
  return votes;
}
inline int __any_sync(unsigned mask, int predicate, CUDA_STAND_IN_PLACE) {
  return __ballot_sync(mask, predicate, place) != 0;
}
inline int __all_sync(unsigned mask, int predicate, CUDA_STAND_IN_PLACE) {
  return __ballot_sync(mask, predicate, place) == mask;
}
template <typename T>
unsigned __match_any_sync(unsigned mask, T value, CUDA_STAND_IN_PLACE) {
  cuda_stand_in::exchange(mask, cuda_stand_in::to_bits(value), place);
  unsigned same = 0;
  for (int i = 0; i < warpSize; ++i) {
    if ((mask >> i & 1) && cuda_stand_in::exchanged(i) == cuda_stand_in::to_bits(value)) same |= 1u << i;
  }
  return same;
}
template <typename T>
T __reduce_add_sync(unsigned mask, T value, CUDA_STAND_IN_PLACE) {
  return cuda_stand_in::reduce(
      mask, value, [](T a, T b) { return a + b; }, place);
}
template <typename T>
T __reduce_max_sync(unsigned mask, T value, CUDA_STAND_IN_PLACE) {
  return cuda_stand_in::reduce(
      mask, value, [](T a, T b) { return std::max(a, b); }, place);
}
template <typename T>
T __reduce_min_sync(unsigned mask, T value, CUDA_STAND_IN_PLACE) {
  return cuda_stand_in::reduce(
      mask, value, [](T a, T b) { return std::min(a, b); }, place);
}

template <typename T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return cuda_stand_in::atomic_change(address, [&](T old) { return old + value; });
}
template <typename T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  return cuda_stand_in::atomic_change(address, [&](T old) { return std::max(old, value); });
}
template <typename T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  return cuda_stand_in::atomic_change(address, [&](T old) { return std::min(old, value); });
}
template <typename T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  return cuda_stand_in::atomic_change(address, [&](T old) { return old | value; });
}
template <typename T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  return cuda_stand_in::atomic_change(address, [&](T) { return value; });
}
template <typename T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return cuda_stand_in::atomic_change(address, [&](T old) { return old == expected ? value : old; });
}

// ---- Arithmetic ----

template <typename T>
T __ldg(const T* p) {
  return *p;
}
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __fdividef(float a, float b) { return a / b; }
using std::max;
using std::min;
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32); }
// Byte i of the result is the byte of {b, a} that nibble i of `selector` names.
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned nibble = selector >> (4 * i) & 15, byte = static_cast<unsigned>(bytes >> (8 * (nibble & 7)) & 255);
    result |= (nibble & 8 ? (byte & 128 ? 255u : 0u) : byte) << (8 * i);
  }
  return result;
}
inline int __dp4a(int a, int b, int sum) {
  for (int i = 0; i < 4; ++i) sum += static_cast<int8_t>(a >> (8 * i)) * static_cast<int8_t>(b >> (8 * i));
  return sum;
}
inline int __dp2a_lo(int a, int b, int sum) {
  for (int i = 0; i < 2; ++i) sum += static_cast<int16_t>(a >> (16 * i)) * static_cast<int8_t>(b >> (8 * i));
  return sum;
}
inline unsigned __vsubss4(unsigned a, unsigned b) {
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const int d = static_cast<int8_t>(a >> (8 * i)) - static_cast<int8_t>(b >> (8 * i));
    result |= static_cast<unsigned>(static_cast<uint8_t>(std::clamp(d, -128, 127))) << (8 * i);
  }
  return result;
}
