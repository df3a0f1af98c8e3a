// The best of some candidates in order, by one block of threads: the higher value first, among equals the lower index,
// NaN last.
#pragma once

#include "backends/cuda/kernel.h"

namespace infer::cuda {

struct Candidate {
  float value;
  uint32_t index;  // kNothing: none
};
inline constexpr uint32_t kNothing = 0xffffffffu;

__device__ inline bool better(const Candidate& a, const Candidate& b) {
  if (b.index == kNothing) return a.index != kNothing;
  if (a.index == kNothing) return false;
  const bool nan_a = a.value != a.value, nan_b = b.value != b.value;
  if (nan_a || nan_b) return nan_a == nan_b ? a.index < b.index : nan_b;
  return a.value != b.value ? a.value > b.value : a.index < b.index;
}

__device__ inline Candidate warp_best(Candidate c) {
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    const Candidate other = {__shfl_xor_sync(kAllLanes, c.value, lanes), __shfl_xor_sync(kAllLanes, c.index, lanes)};
    if (better(other, c)) c = other;
  }
  return c;
}

struct BestOfWarps {
  Candidate best[kWarp];
};
// The best of a block of several warps, in all threads. Every thread must call it.
__device__ inline Candidate block_best(Candidate c) {
  BestOfWarps& room = shared_memory<BestOfWarps>();
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  c = warp_best(c);
  __syncthreads();  // an earlier result has been read
  if (lane == 0) room.best[warp] = c;
  __syncthreads();
  return warp_best(lane < blockDim.x / kWarp ? room.best[lane] : Candidate{0, kNothing});
}

// Calls put(place, candidate), in one thread, for the k best of n candidates read(0 .. n - 1). Where there are fewer,
// the index is kNothing. Returns the best, in all threads. Each thread keeps the best of every blockDim.x-th candidate,
// and looks again only when that has been taken.
template <typename Read, typename Put>
__device__ Candidate select_best(int64_t n, int k, Read read, Put put) {
  Candidate mine = {0, kNothing}, last = {0, kNothing}, first = {0, kNothing};
  for (int place = 0; place < k; ++place) {
    if (place == 0 || (mine.index == last.index && last.index != kNothing)) {
      mine.index = kNothing;
      for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        const Candidate c = read(i);
        const bool left = place == 0 || better(last, c);
        if (left && better(c, mine)) mine = c;
      }
    }
    last = block_best(mine);
    if (place == 0) first = last;
    if (threadIdx.x == 0) put(place, last);
  }
  return first;
}

}  // namespace infer::cuda
