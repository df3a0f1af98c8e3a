#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "ggml-like/half.h"
#include "tests/support/quant_reference.h"

using namespace infer;

namespace {

// Rounding by comparison, in double: to the nearer of two neighbours, or at equal distance to the one with the even
// number. `value(n)` is the n-th magnitude of the format, for n up to `infinity`, which counts as the next power of
// two.
template <typename Value>
uint32_t nearest(double magnitude, uint32_t infinity, Value value) {
  uint32_t low = 0, high = infinity;
  if (magnitude >= value(infinity)) return infinity;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (value(middle) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - value(low), above = value(high) - magnitude;
  if (below != above) return below < above ? low : high;
  return low % 2 == 0 ? low : high;
}

double half_magnitude(uint32_t n) { return n == 0x7c00 ? 65536.0 : test::half_value(n); }
double bf16_magnitude(uint32_t n) { return n == 0x7f80 ? 0x1p128 : std::bit_cast<float>(n << 16); }

uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }

void check_rounding(float x) {
  const uint32_t sign = bits_of(x) >> 31 << 15;
  const double magnitude = std::abs(static_cast<double>(x));
  const uint32_t half = f32_to_f16(x), bf16 = f32_to_bf16(x);
  if (half != (sign | nearest(magnitude, 0x7c00, half_magnitude))) FAIL("f16 of bits " << bits_of(x) << ": " << half);
  if (bf16 != (sign | nearest(magnitude, 0x7f80, bf16_magnitude))) FAIL("bf16 of bits " << bits_of(x) << ": " << bf16);
}

}  // namespace

static_assert(f16_to_f32(0x3c00) == 1.0f && f16_to_f32(0x0001) == 0x1p-24f && f32_to_f16(-2.0f) == 0xc000);
static_assert(bf16_to_f32(0x3f80) == 1.0f && f32_to_bf16(1.0f) == 0x3f80);

TEST_CASE("f16: all 65536 values convert exactly and back") {
  int wrong = 0;
  for (uint32_t h = 0; h < 65536; ++h) {
    const float x = f16_to_f32(static_cast<uint16_t>(h));
    if ((h & 0x7fff) > 0x7c00) {
      // NaN: sign and payload kept, quiet.
      wrong += bits_of(x) != ((h & 0x8000) << 16 | 0x7fc00000u | (h & 0x3ff) << 13);
      wrong += f32_to_f16(x) != (h | 0x200);
    } else {
      wrong += bits_of(x) != bits_of(static_cast<float>(test::half_value(h)));
      wrong += f32_to_f16(x) != h;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("bf16: all 65536 values convert exactly and back") {
  int wrong = 0;
  for (uint32_t h = 0; h < 65536; ++h) {
    const float x = bf16_to_f32(static_cast<uint16_t>(h));
    wrong += bits_of(x) != h << 16;
    wrong += f32_to_bf16(x) != ((h & 0x7fff) > 0x7f80 ? h | 0x40 : h);
  }
  CHECK(wrong == 0);
}

TEST_CASE("rounding at and next to every midpoint, and of random floats") {
  for (uint32_t n = 0; n < 0x7c00; ++n) {
    const float middle = static_cast<float>((half_magnitude(n) + half_magnitude(n + 1)) / 2);
    for (float x : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, INFINITY)}) {
      check_rounding(x);
      check_rounding(-x);
    }
  }
  for (uint32_t n = 0; n < 0x7f80; ++n) {
    const uint32_t middle = n << 16 | 0x8000;
    for (uint32_t bits : {middle - 1, middle, middle + 1}) check_rounding(std::bit_cast<float>(bits));
  }
  test::Random random(1);
  for (int i = 0; i < 200000; ++i) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(random.next()));
    if (!std::isnan(x)) check_rounding(x);
  }
  check_rounding(std::numeric_limits<float>::max());
  check_rounding(INFINITY);
}

TEST_CASE("NaNs stay NaN when narrowed, whatever their payload") {
  for (uint32_t bits : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0x7fc00000u, 0xff80ffffu}) {
    const float x = std::bit_cast<float>(bits);
    CHECK(std::isnan(f16_to_f32(f32_to_f16(x))));
    CHECK(std::isnan(bf16_to_f32(f32_to_bf16(x))));
  }
}

TEST_CASE("E8M0 codes are powers of two, all 256") {
  for (int e = 0; e < 256; ++e) CHECK(e8m0_to_f32_half(static_cast<uint8_t>(e)) == std::ldexp(1.0, e - 128));
}
