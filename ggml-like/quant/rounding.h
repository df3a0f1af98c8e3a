// Rounds to the nearest integer, ties to even, without a library call: adding 1.5 * 2^23 (2^52) shifts the fraction out
// of the mantissa. REQUIRES: the default rounding mode and |x| < 2^22 (2^51).
#pragma once

#include <cstdint>

namespace infer {

inline int32_t round_even(float x) { return static_cast<int32_t>((x + 0x1.8p23f) - 0x1.8p23f); }
inline int32_t round_even(double x) { return static_cast<int32_t>((x + 0x1.8p52) - 0x1.8p52); }

}  // namespace infer
