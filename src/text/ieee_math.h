// exp and log of doubles in plain IEEE arithmetic: the same bits on every machine and instruction set. The C library
// does not guarantee that, since it selects FMA variants at run time. Error below 1.5 ulp. Pure functions. Unlike those
// of ggml-like/float_math.h they take any number, and loops over them vectorize without FMA.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace infer {

namespace ieee_detail {

inline constexpr double kLog2E = 1.44269504088896340736;
// ln 2 in two parts; the first has 32 significant bits, so that its product with an exponent is exact.
inline constexpr double kLn2High = 6.93147180369123816490e-01;
inline constexpr double kLn2Low = 1.90821492927058770002e-10;

// 2^n for -1022 <= n <= 1023.
inline double power_of_two(int64_t n) { return std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52); }

// exp(x) = 2^n * (value returned), |x| < 2^20; n is the integer nearest to x / ln 2. No branches.
inline double exp_reduced(double x, int64_t& n) {
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
  const double shifted = x * kLog2E + kRound;
  const double k = shifted - kRound;
  n = std::bit_cast<int64_t>(shifted) - std::bit_cast<int64_t>(kRound);
  const double r = (x - k * kLn2High) - k * kLn2Low;  // |r| <= 0.3466
  double p = 1.0 / 6227020800.0;                      // Taylor series to r^13 / 13!; the next term is below 2^-57
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  return 1.0 + (r + r * r * p);
}

}  // namespace ieee_detail

// exp(x) for any x; underflows gradually to 0.
inline double ieee_exp(double x) {
  if (x != x) return x;
  if (x > 709.79) return std::numeric_limits<double>::infinity();
  if (x < -745.2) return 0.0;
  int64_t n = 0;
  const double m = ieee_detail::exp_reduced(x, n);
  const int64_t half = n / 2;  // in two steps, since 2^n itself may not be a normal number
  return m * ieee_detail::power_of_two(half) * ieee_detail::power_of_two(n - half);
}

// exp(max(x, -708)) for x <= 0 or -inf. Never below 3e-308, which is negligible in a sum that contains a 1. No
// branches, so that loops vectorize.
inline double ieee_exp_nonpositive(double x) {
  int64_t n = 0;
  const double m = ieee_detail::exp_reduced(x > -708.0 ? x : -708.0, n);
  return m * ieee_detail::power_of_two(n);
}

// log(x): NaN below 0, -inf at 0.
inline double ieee_log(double x) {
  if (!(x > 0.0)) {
    return x == 0.0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  if (x > std::numeric_limits<double>::max()) return x;
  int64_t e = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 18014398509481984.0;  // 2^54 makes a denormal normal
    e = -54;
  }
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  e += static_cast<int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffULL) | 0x3ff0000000000000ULL);
  if (m > 1.41421356237309504880) {
    m *= 0.5;
    e += 1;
  }
  // With f = m - 1 and s = f / (2 + f): log(1 + f) = 2 atanh(s) = 2s + s * q(s^2), and 2s = f - s * f exactly.
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;  // at most 0.0295
  double q = 2.0 / 21.0;
  q = q * z + 2.0 / 19.0;
  q = q * z + 2.0 / 17.0;
  q = q * z + 2.0 / 15.0;
  q = q * z + 2.0 / 13.0;
  q = q * z + 2.0 / 11.0;
  q = q * z + 2.0 / 9.0;
  q = q * z + 2.0 / 7.0;
  q = q * z + 2.0 / 5.0;
  q = q * z + 2.0 / 3.0;
  q = q * z;
  const double k = static_cast<double>(e);
  return k * ieee_detail::kLn2High - ((s * (f - q) - k * ieee_detail::kLn2Low) - f);
}

inline double ieee_log2(double x) { return ieee_log(x) * ieee_detail::kLog2E; }

// base^n by repeated squaring, n >= 0.
inline double ieee_power(double base, int64_t n) {
  double result = 1.0;
  for (; n > 0; n >>= 1) {
    if (n & 1) result *= base;
    base *= base;
  }
  return result;
}

}  // namespace infer
