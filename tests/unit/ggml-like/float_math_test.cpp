// The portable elementary functions against the C library's long double, and the angles of rope.
#include "ggml-like/float_math.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "ggml-like/rope_angles.h"
#include "tests/support/quant_reference.h"

using namespace infer;

namespace {

double relative(double found, long double exact) { return static_cast<double>(std::abs((found - exact) / exact)); }

}  // namespace

TEST_CASE("portable_exp: relative error, ends of the range, NaN") {
  test::Random random(1);
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const double x = (random.uniform() * 2 - 1) * (i % 2 ? 708 : 3);
    worst = std::max(worst, relative(portable_exp(x), std::exp(static_cast<long double>(x))));
  }
  MESSAGE("exp: " << worst);
  CHECK(worst < 1e-15);
  CHECK(portable_exp(0) == 1);
  CHECK(portable_exp(-0.0) == 1);
  CHECK(portable_exp(710) == std::numeric_limits<double>::infinity());
  CHECK(std::isfinite(portable_exp(709.7)));
  CHECK(portable_exp(-746) == 0);
  CHECK(portable_exp(-744) > 0);
  CHECK(portable_exp(std::numeric_limits<double>::infinity()) == std::numeric_limits<double>::infinity());
  CHECK(portable_exp(-std::numeric_limits<double>::infinity()) == 0);
  CHECK(std::isnan(portable_exp(std::numeric_limits<double>::quiet_NaN())));
  // Denormal results are off by at most the smallest denormal.
  CHECK(std::abs(portable_exp(-740) - std::exp(-740.0)) <= 2 * std::numeric_limits<double>::denorm_min());
}

TEST_CASE("portable_log: error relative to the larger of log and 1, powers of two exact enough, denormals") {
  test::Random random(2);
  double worst = 0, near_one = 0;
  for (int i = 0; i < 200000; ++i) {
    const double x = std::ldexp(1 + random.uniform(), static_cast<int>(random.next() % 2000) - 1000);
    worst = std::max(worst, relative(portable_log(x), std::log(static_cast<long double>(x))));
    const double y = 1 + (random.uniform() - 0.5) * 0.1;
    if (y != 1) near_one = std::max(near_one, relative(portable_log(y), std::log(static_cast<long double>(y))));
  }
  MESSAGE("log: " << worst << ", near 1: " << near_one);
  CHECK(worst < 1e-15);
  CHECK(near_one < 1e-15);
  CHECK(portable_log(1) == 0);
  const double tiny = std::numeric_limits<double>::denorm_min();
  CHECK(relative(portable_log(tiny), std::log(static_cast<long double>(tiny))) < 1e-15);
}

TEST_CASE("portable_pow: errors are those of exp and log") {
  for (const double base : {0.5, 2.0, 10000.0, 500000.0, 1e7}) {
    for (double e = -1; e <= 1; e += 0.03125) {
      CHECK(relative(portable_pow(base, e), std::pow(static_cast<long double>(base), static_cast<long double>(e))) <
            6e-15);
    }
  }
}

TEST_CASE("portable_sincos: absolute error below one part in 1e15 up to a million, no growth to 1e9") {
  test::Random random(3);
  double worst = 0, worst_far = 0;
  for (int i = 0; i < 200000; ++i) {
    const bool far = i % 2;
    const double x = (random.uniform() * 2 - 1) * (far ? 1e9 : i % 4 ? 1e6 : 4);
    const SinCos v = portable_sincos(x);
    const double off = static_cast<double>(std::max(std::abs(v.sin - std::sin(static_cast<long double>(x))),
                                                    std::abs(v.cos - std::cos(static_cast<long double>(x)))));
    (far ? worst_far : worst) = std::max(far ? worst_far : worst, off);
  }
  MESSAGE("sincos: " << worst << " to 1e6, " << worst_far << " to 1e9");
  CHECK(worst < 1e-15);
  CHECK(worst_far < 1e-15);
  CHECK(portable_sincos(0).sin == 0);
  CHECK(portable_sincos(0).cos == 1);
  for (int k = -9; k <= 9; ++k) {
    const SinCos v = portable_sincos(k * std::numbers::pi / 2);
    CHECK(std::abs(v.sin - std::sin(k * std::numbers::pi / 2)) < 1e-15);
    CHECK(std::abs(v.cos - std::cos(k * std::numbers::pi / 2)) < 1e-15);
  }
}

TEST_CASE("rope: angles of plain, linear and factored tables") {
  const RopeAngles plain = rope_angles({.n_dims = 64, .freq_base = 10000}, {});
  REQUIRE(plain.step.size() == 32);
  CHECK(plain.magnitude == 1);
  for (int i = 0; i < 32; ++i) CHECK(plain.step[i] == doctest::Approx(std::pow(10000.0, -i / 32.0)).epsilon(1e-14));
  const RopeAngles half = rope_angles({.n_dims = 64, .freq_base = 10000, .freq_scale = 0.5f, .attn_factor = 1.5f}, {});
  CHECK(half.magnitude == 1.5f);
  for (int i = 0; i < 32; ++i) CHECK(half.step[i] == doctest::Approx(plain.step[i] / 2).epsilon(1e-14));
  std::vector<float> factors(32, 1);
  factors[31] = 8;
  const RopeAngles factored = rope_angles({.n_dims = 64, .freq_base = 10000}, factors);
  CHECK(factored.step[0] == plain.step[0]);
  CHECK(factored.step[31] == doctest::Approx(plain.step[31] / 8).epsilon(1e-14));
  float row[64];
  rope_row(half, 1000, row);
  for (int i = 0; i < 32; ++i) {
    CHECK(row[2 * i] == doctest::Approx(1.5 * std::cos(1000 * half.step[i])).epsilon(1e-6));
    CHECK(row[2 * i + 1] == doctest::Approx(1.5 * std::sin(1000 * half.step[i])).epsilon(1e-6));
  }
}

TEST_CASE("rope: YaRN extrapolates fast pairs, interpolates slow ones, and blends between") {
  RopeTableParams p{.n_dims = 128,
                    .freq_base = 10000,
                    .freq_scale = 0.25f,
                    .ext_factor = 1,
                    .attn_factor = 1,
                    .beta_fast = 32,
                    .beta_slow = 1,
                    .original_context = 4096};
  const RopeAngles yarn = rope_angles(p, {});
  const RopeAngles plain = rope_angles({.n_dims = 128, .freq_base = 10000}, {});
  CHECK(yarn.magnitude == doctest::Approx(1 + 0.1 * std::log(4.0)));
  // Pair i makes 4096 / (2 pi 10000^(i / 64)) turns in the context: 32 turns at i = 20.9, one at i = 45.03.
  double last = 1;
  for (int i = 0; i < 64; ++i) {
    const double ratio = yarn.step[i] / plain.step[i];
    CAPTURE(i);
    if (i <= 20) CHECK(ratio == doctest::Approx(1).epsilon(1e-12));
    if (i >= 46) CHECK(ratio == doctest::Approx(0.25).epsilon(1e-12));
    if (i > 20 && i < 46) CHECK((ratio < last && ratio > 0.25));
    last = ratio;
  }
  p.ext_factor = 0;
  const RopeAngles linear = rope_angles(p, {});
  CHECK(linear.magnitude == 1);
  CHECK(linear.step[0] == doctest::Approx(0.25));
}
