// Four floats at a time, for the search of scales: GCC's and Clang's vector types, which are vector instructions on
// every target's baseline and nothing but IEEE operations in a written order, so the same bits everywhere.
#pragma once

#include <cstdint>

namespace infer {

using Lanes = float __attribute__((vector_size(16)));
using LaneMask = int32_t __attribute__((vector_size(16)));

inline constexpr int kLanes = 4;

inline Lanes all_lanes(float v) { return Lanes{v, v, v, v}; }
inline Lanes load_lanes(const float* x) { return *reinterpret_cast<const Lanes*>(x); }  // REQUIRES 16-byte alignment
inline void store_lanes(float* x, Lanes v) { *reinterpret_cast<Lanes*>(x) = v; }

// A NaN in v gives the bound.
inline Lanes clamp_lanes(Lanes v, Lanes low, Lanes high) {
  v = v > low ? v : low;
  return v < high ? v : high;
}
inline Lanes abs_lanes(Lanes v) { return v < 0.0f ? -v : v; }

// To the nearest integer, ties to even, as rounding.h does. REQUIRES |v| < 2^22.
inline Lanes round_lanes(Lanes v) { return (v + 0x1.8p23f) - 0x1.8p23f; }

inline float sum_lanes(Lanes v) { return (v[0] + v[2]) + (v[1] + v[3]); }

}  // namespace infer
