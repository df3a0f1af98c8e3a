// Value tables of the formats whose codes are indices. Plain C, for C++ and CUDA.
#pragma once

#include <stdint.h>

namespace infer {

// IQ4_NL and IQ4_XS: 4-bit code -> value, ascending, denser around zero like weights.
constexpr int8_t kIQ4NLValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// MXFP4, NVFP4: 4-bit code (sign, two exponent bits, one mantissa bit) -> twice the E2M1 value, to make it an integer.
constexpr int8_t kMXFP4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace infer
