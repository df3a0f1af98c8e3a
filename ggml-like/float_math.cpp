#include "ggml-like/float_math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace infer {
namespace {

// ln 2 and pi / 2, each as the sum of a short and a precise part, so that k * short part is exact for all k used.
constexpr double kLn2High = 0x1.62e42fee00000p-1, kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kHalfPi1 = 0x1.921fb54400000p+0, kHalfPi2 = 0x1.0b4611a600000p-34, kHalfPi3 = 0x1.3198a2e037073p-69;

double scale_by_power(double x, int power) {
  const auto two_to = [](int n) { return std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52); };
  while (power > 1000) x *= two_to(1000), power -= 1000;
  while (power < -1000) x *= two_to(-1000), power += 1000;
  return x * two_to(power);
}

}  // namespace

double portable_exp(double x) {
  if (!(x < 709.8)) return x < 709.8 || x != x ? x : std::numeric_limits<double>::infinity();
  if (x < -745.2) return 0;
  const double k = std::floor(x * 0x1.71547652b82fep+0 + 0.5);
  const double r = std::fma(-k, kLn2Low, std::fma(-k, kLn2High, x));
  double sum = 1.0 / 6227020800.0;  // Taylor series to r^13 on |r| <= ln 2 / 2
  constexpr double kInverseFactorial[] = {
      1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
      1.0 / 120,       1.0 / 24,       1.0 / 6,       0.5,          1.0,         1.0};
  for (const double c : kInverseFactorial) sum = std::fma(sum, r, c);
  return scale_by_power(sum, static_cast<int>(k));
}

double portable_log(double x) {
  int exponent = 0;
  if (x < std::numeric_limits<double>::min()) x *= 0x1p54, exponent = -54;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  exponent += static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
  if (m > 1.4142135623730951) m *= 0.5, ++exponent;
  const double s = (m - 1) / (m + 1), z = s * s;
  double sum = 0;  // 2 atanh(s), |s| < 0.172
  for (int i = 25; i >= 3; i -= 2) sum = std::fma(sum, z, 1.0 / i);
  const double tail = 2 * s * z * sum;
  return std::fma(exponent, kLn2High, std::fma(exponent, kLn2Low, tail) + 2 * s);
}

double portable_pow(double base, double exponent) { return portable_exp(exponent * portable_log(base)); }

SinCos portable_sincos(double x) {
  const double k = std::floor(x * 0x1.45f306dc9c883p-1 + 0.5);
  const double r = std::fma(-k, kHalfPi3, std::fma(-k, kHalfPi2, std::fma(-k, kHalfPi1, x)));
  const double z = r * r;
  double s = 1.0 / 355687428096000.0, c = 1.0 / 20922789888000.0;  // Taylor on |r| <= pi / 4
  constexpr double kSin[] = {
      -1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6};
  constexpr double kCos[] = {
      -1.0 / 87178291200.0, 1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -0.5};
  for (const double a : kSin) s = std::fma(s, z, a);
  for (const double a : kCos) c = std::fma(c, z, a);
  const double sine = std::fma(s * z, r, r), cosine = std::fma(c, z, 1.0);
  switch (static_cast<int64_t>(k) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

}  // namespace infer
