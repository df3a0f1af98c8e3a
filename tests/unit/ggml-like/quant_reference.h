// Blocks of every quantized format taken apart bit by bit, from the byte offsets of the format definitions and without
// the structs, tables or conversions of the library: what the library's decoders and dots are checked against.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace infer::test {

// A fixed stream of pseudo-random numbers (splitmix64), the same on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  // Nearly normal, mean 0 and variance 1, without a library function: the sum of 12 uniforms.
  float normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return static_cast<float>(sum);
  }
  std::vector<float> normals(size_t n) {
    std::vector<float> x(n);
    for (float& v : x) v = normal();
    return x;
  }

 private:
  uint64_t state_;
};

inline double half_value(uint32_t bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const int mantissa = static_cast<int>(bits & 1023);
  if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

// What one block says. 32 values: x = d * code + m. 256 values: x = d * scale[i / sub] * code - m * min[i / sub].
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

inline Fields take_apart(std::string_view type, const void* block) {
  const auto* bytes = static_cast<const uint8_t*>(block);
  // `count` bits from bit `first`, counted from the low end of byte 0.
  const auto bits = [&](int first, int count) {
    int value = 0;
    for (int k = 0; k < count; ++k) value |= (bytes[(first + k) / 8] >> ((first + k) % 8) & 1) << k;
    return value;
  };
  const auto half_at = [&](int byte) { return half_value(static_cast<uint32_t>(bits(8 * byte, 16))); };
  const auto int8_at = [&](int byte) { return bits(8 * byte, 8) - (bits(8 * byte + 7, 1) << 8); };
  const int nl[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

  Fields f;
  if (type == "Q4_0" || type == "IQ4_NL") {
    f.d = half_at(0);
    for (int i = 0; i < 32; ++i) {
      const int code = bits(16 + 8 * (i % 16) + (i < 16 ? 0 : 4), 4);
      f.code[i] = type == "Q4_0" ? code - 8 : nl[code];
    }
  } else if (type == "Q4_1") {
    f.has_min = true;
    f.d = half_at(0);
    f.m = half_at(2);
    for (int i = 0; i < 32; ++i) f.code[i] = bits(32 + 8 * (i % 16) + (i < 16 ? 0 : 4), 4);
  } else if (type == "Q5_0") {
    f.d = half_at(0);
    for (int i = 0; i < 32; ++i) f.code[i] = bits(48 + 8 * (i % 16) + (i < 16 ? 0 : 4), 4) + 16 * bits(16 + i, 1) - 16;
  } else if (type == "Q5_1") {
    f.has_min = true;
    f.d = half_at(0);
    f.m = half_at(2);
    for (int i = 0; i < 32; ++i) f.code[i] = bits(64 + 8 * (i % 16) + (i < 16 ? 0 : 4), 4) + 16 * bits(32 + i, 1);
  } else if (type == "Q8_0") {
    f.d = half_at(0);
    for (int i = 0; i < 32; ++i) f.code[i] = int8_at(2 + i);
  } else if (type == "MXFP4") {
    // A real E2M1 value is (1 + mantissa / 2) * 2^(exponent - 1), or mantissa / 2 when the exponent is 0.
    f.d = std::ldexp(1.0, bytes[0] - 128);
    for (int i = 0; i < 32; ++i) {
      const int first = 8 + 8 * (i % 16) + (i < 16 ? 0 : 4);
      const int mantissa = bits(first, 1), exponent = bits(first + 1, 2), sign = bits(first + 3, 1) ? -1 : 1;
      f.code[i] = sign * (exponent == 0 ? mantissa : (2 + mantissa) << (exponent - 1));
    }
  } else if (type == "Q2_K") {
    f.n = 256;
    f.sub = 16;
    f.has_min = true;
    f.d = half_at(80);
    f.m = half_at(82);
    for (int s = 0; s < 16; ++s) {
      f.scale[s] = bits(8 * s, 4);
      f.min[s] = bits(8 * s + 4, 4);
    }
    for (int i = 0; i < 256; ++i) f.code[i] = bits(8 * (16 + i / 128 * 32 + i % 32) + i % 128 / 32 * 2, 2);
  } else if (type == "Q3_K") {
    f.n = 256;
    f.sub = 16;
    f.d = half_at(108);
    for (int s = 0; s < 16; ++s) {
      const int low = s < 8 ? bits(8 * (96 + s), 4) : bits(8 * (96 + s - 8) + 4, 4);
      f.scale[s] = low + 16 * bits(8 * (104 + s % 4) + s / 4 * 2, 2) - 32;
    }
    for (int i = 0; i < 256; ++i) {
      const int low = bits(8 * (32 + i / 128 * 32 + i % 32) + i % 128 / 32 * 2, 2);
      f.code[i] = low - (bits(8 * (i % 32) + i / 32, 1) ? 0 : 4);
    }
  } else if (type == "Q4_K" || type == "Q5_K") {
    const bool five = type == "Q5_K";
    f.n = 256;
    f.has_min = true;
    f.d = half_at(0);
    f.m = half_at(2);
    for (int s = 0; s < 4; ++s) {
      f.scale[s] = bits(8 * (4 + s), 6);
      f.min[s] = bits(8 * (8 + s), 6);
      f.scale[s + 4] = bits(8 * (12 + s), 4) + 16 * bits(8 * (4 + s) + 6, 2);
      f.min[s + 4] = bits(8 * (12 + s) + 4, 4) + 16 * bits(8 * (8 + s) + 6, 2);
    }
    for (int i = 0; i < 256; ++i) {
      const int byte = (five ? 48 : 16) + i / 64 * 32 + i % 32;
      f.code[i] = bits(8 * byte + (i % 64 < 32 ? 0 : 4), 4) + (five ? 16 * bits(8 * (16 + i % 32) + i / 32, 1) : 0);
    }
  } else if (type == "Q6_K") {
    f.n = 256;
    f.sub = 16;
    f.d = half_at(208);
    for (int s = 0; s < 16; ++s) f.scale[s] = int8_at(192 + s);
    for (int i = 0; i < 256; ++i) {
      const int half = i / 128, quarter = i % 128 / 32, k = i % 32;
      const int low = bits(8 * (64 * half + 32 * (quarter % 2) + k) + (quarter < 2 ? 0 : 4), 4);
      f.code[i] = low + 16 * bits(8 * (128 + 32 * half + k) + 2 * quarter, 2) - 32;
    }
  } else if (type == "IQ4_XS") {
    f.n = 256;
    f.d = half_at(0);
    for (int s = 0; s < 8; ++s) f.scale[s] = bits(32 + 4 * s, 4) + 16 * bits(16 + 2 * s, 2) - 32;
    for (int i = 0; i < 256; ++i) f.code[i] = nl[bits(8 * (8 + i / 32 * 16 + i % 16) + (i % 32 < 16 ? 0 : 4), 4)];
  } else if (type == "Q8_K") {
    float d = 0;
    const int raw = bits(0, 16) | bits(16, 16) << 16;
    static_assert(sizeof d == sizeof raw);
    d = __builtin_bit_cast(float, raw);
    f.n = 256;
    f.sub = 256;
    f.scale[0] = 1;
    f.d = d;
    for (int i = 0; i < 256; ++i) f.code[i] = int8_at(4 + i);
  } else {
    std::abort();
  }
  return f;
}

}  // namespace infer::test
