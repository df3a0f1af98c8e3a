// Four floats at a time, for the search of scales, using GCC's and Clang's vector types: vector instructions on every
// target's baseline, but only IEEE operations in a fixed order, so the same bits everywhere.
#pragma once

#include <cstdint>

namespace infer {

using Lanes = float __attribute__((vector_size(16)));
using LaneMask = int32_t __attribute__((vector_size(16)));

inline constexpr int kLanes = 4;

inline Lanes all_lanes(float v) { return Lanes{v, v, v, v}; }
inline Lanes load_lanes(const float* x) { return *reinterpret_cast<const Lanes*>(x); }  // REQUIRES: 16-byte alignment
inline void store_lanes(float* x, Lanes v) { *reinterpret_cast<Lanes*>(x) = v; }

// v where it is beyond the bound; elsewhere, and for NaN, the bound. GCC compiles this to one instruction only if the
// bound is not a visible constant, so fits receive it as an argument from another translation unit.
inline Lanes at_least(Lanes v, Lanes bound) { return v > bound ? v : bound; }
inline Lanes at_most(Lanes v, Lanes bound) { return v < bound ? v : bound; }
inline Lanes clamp_lanes(Lanes v, Lanes low, Lanes high) { return at_most(at_least(v, low), high); }
inline Lanes abs_lanes(Lanes v) { return reinterpret_cast<Lanes>(reinterpret_cast<LaneMask>(v) & 0x7fffffff); }

// Rounds to the nearest integer, ties to even, like rounding.h. REQUIRES: |v| < 2^22.
inline Lanes round_lanes(Lanes v) { return (v + 0x1.8p23f) - 0x1.8p23f; }
// The same as an integer in the low 22 bits, taken from the sum's mantissa.
inline LaneMask round_to_bits(Lanes v) { return reinterpret_cast<LaneMask>(v + 0x1.8p23f); }

inline float sum_lanes(Lanes v) { return (v[0] + v[2]) + (v[1] + v[3]); }

}  // namespace infer
