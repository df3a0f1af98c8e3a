// The fields of a block of any quantized format, and reading bits of it: for the slow decoders of the tests.
#pragma once

#include <cmath>
#include <cstdint>

namespace infer::test {

inline double half_value(uint32_t bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const int mantissa = static_cast<int>(bits & 1023);
  if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

// The contents of one block. 32 values: x = d * code + m. More: x = d * scale[i / sub] * code - m * min[i / sub].
struct Fields {
  int n = 32;
  int sub = 32;
  bool has_min = false;
  double d = 0;
  double m = 0;
  int code[256] = {};
  int scale[16] = {};
  int min[16] = {};

  double scaled(int i) const { return n == 32 ? d * code[i] : d * scale[i / sub] * code[i]; }
  double offset(int i) const { return !has_min ? 0 : n == 32 ? m : -m * min[i / sub]; }
  double value(int i) const { return has_min ? scaled(i) + offset(i) : scaled(i); }
};

// The bytes of a block, read bit by bit.
struct BlockBits {
  const uint8_t* bytes;

  // `count` bits from bit `first`, counted from the low end of byte 0.
  int operator()(int first, int count) const {
    int value = 0;
    for (int k = 0; k < count; ++k) value |= (bytes[(first + k) / 8] >> ((first + k) % 8) & 1) << k;
    return value;
  }
  double half_at(int byte) const { return half_value(static_cast<uint32_t>((*this)(8 * byte, 16))); }
  int int8_at(int byte) const { return (*this)(8 * byte, 8) - ((*this)(8 * byte + 7, 1) << 8); }
};

}  // namespace infer::test
