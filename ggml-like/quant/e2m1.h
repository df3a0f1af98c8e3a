// Encoding of E2M1, the 4-bit floats of MXFP4 and NVFP4.
#pragma once

#include <cmath>
#include <cstdint>

#include "ggml-like/quant/tables.h"

namespace infer {

// The code of the value nearest to v in kMXFP4Values; ties go to the even mantissa, as in E2M1 conversions.
inline uint8_t nearest_e2m1(double v) {
  const double magnitude = std::abs(v);
  int code = 0;
  for (int k = 0; k < 7; ++k) {
    const double middle = (kMXFP4Values[k] + kMXFP4Values[k + 1]) / 2.0;
    if (magnitude > middle || (magnitude == middle && k % 2 == 1)) code = k + 1;
  }
  return static_cast<uint8_t>(code | (v < 0 && code > 0 ? 8 : 0));
}

// Fills in the codes of n values for the scale d of kMXFP4Values and returns the weighted squared error.
inline double encode_e2m1(const float* x, const float* importance, int n, double d, uint8_t* code) {
  double error = 0;
  for (int i = 0; i < n; ++i) {
    code[i] = nearest_e2m1(x[i] / d);
    const double difference = x[i] - d * kMXFP4Values[code[i]];
    error += difference * difference * (importance ? importance[i] : 1);
  }
  return error;
}

}  // namespace infer
