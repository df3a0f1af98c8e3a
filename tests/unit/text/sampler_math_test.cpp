// exp and log against the C library's long double, Philox against its published vectors.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "src/text/ieee_math.h"
#include "src/text/sampler_noise.h"

using namespace infer;

namespace {

// Distance in units in the last place of the double nearest to `exact`.
double ulps(double value, long double exact) {
  const double rounded = static_cast<double>(exact);
  const double step = std::nextafter(std::fabs(rounded), INFINITY) - std::fabs(rounded);
  return static_cast<double>(std::fabs(static_cast<long double>(value) - exact) / step);
}

}  // namespace

TEST_CASE("ieee_exp is within 1.5 ulp over its whole range") {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> wide(-708, 709), narrow(-2, 2);
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const double x = i % 2 ? wide(random) : narrow(random);
    worst = std::max(worst, ulps(ieee_exp(x), expl(x)));
    if (x <= 0 && x > -700) CHECK(ieee_exp_nonpositive(x) == ieee_exp(x));
  }
  CHECK(worst < 1.5);
  for (double x = -745.1; x < -708; x += 0.37) CHECK(std::fabs(ieee_exp(x) - std::exp(x)) <= 4.95e-324);
}

TEST_CASE("ieee_log is within 1.5 ulp, near 1 and in the denormals too") {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> exponent(-1074, 1024), near_one(0.5, 2), tiny(-1e-9, 1e-9);
  double worst = 0;
  for (int i = 0; i < 300000; ++i) {
    const double x = i % 3 == 0 ? std::exp2(exponent(random)) : i % 3 == 1 ? near_one(random) : 1 + tiny(random);
    if (x == 0 || x == 1 || std::isinf(x)) continue;
    worst = std::max(worst, ulps(ieee_log(x), logl(x)));
  }
  CHECK(worst < 1.5);
}

TEST_CASE("exp and log at the edges") {
  CHECK(ieee_exp(0) == 1);
  CHECK(ieee_exp(-INFINITY) == 0);
  CHECK(ieee_exp(INFINITY) == INFINITY);
  CHECK(std::isnan(ieee_exp(NAN)));
  CHECK(ieee_exp(-746) == 0);
  CHECK(ieee_exp(710) == INFINITY);
  CHECK(ieee_exp_nonpositive(-INFINITY) < 4e-308);
  CHECK(ieee_exp_nonpositive(0) == 1);
  CHECK(ieee_log(1) == 0);
  CHECK(ieee_log(0) == -INFINITY);
  CHECK(ieee_log(INFINITY) == INFINITY);
  CHECK(std::isnan(ieee_log(-1)));
  CHECK(std::isnan(ieee_log(NAN)));
  CHECK(ieee_log2(8) == doctest::Approx(3));
  CHECK(ieee_power(1.75, 0) == 1);
  CHECK(ieee_power(3, 5) == 243);
}

TEST_CASE("philox4x32-10 gives the published known answers") {
  using Block = std::array<uint32_t, 4>;
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) == Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("uniform noise is inside (0, 1) and differs by seed, position, stream and token") {
  CHECK(noise_uniform(0) > 0);
  CHECK(noise_uniform((uint64_t{1} << 52) - 1) < 1);
  const uint64_t base = noise_bits(1, 2, NoiseStream::kToken, 3);
  CHECK(base < (uint64_t{1} << 52));
  CHECK(base == noise_bits(1, 2, NoiseStream::kToken, 3));
  CHECK(base != noise_bits(uint64_t{1} << 40 | 1, 2, NoiseStream::kToken, 3));
  CHECK(base != noise_bits(1, 2 + (int64_t{1} << 40), NoiseStream::kToken, 3));
  CHECK(base != noise_bits(1, 2, NoiseStream::kXtc, 3));
  CHECK(base != noise_bits(1, 2, NoiseStream::kToken, 4));
}
