// Elementary functions in plain arithmetic, so that every machine computes the same bits; the C library's differ
// between processors. Double precision, relative error below 1e-15 in the ranges used (|x| < 1e9 for sine and cosine).
#pragma once

namespace infer {

double portable_exp(double x);
double portable_log(double x);                      // REQUIRES: x > 0 and finite
double portable_pow(double base, double exponent);  // REQUIRES: base > 0
// Sine and cosine of x.
struct SinCos {
  double sin, cos;
};
SinCos portable_sincos(double x);

}  // namespace infer
