// What the tests know about each quantized format: a record of facts from other sources, and a decoder that reads
// blocks bit by bit. The decoder uses the byte offsets of the format definitions, and none of the library's structs,
// tables and conversions, except the codebooks: those are constants, which the hashes in the records cover. The
// library's decoders, encoders and dots are checked against both.
#pragma once

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "ggml-like/data_type.h"
#include "ggml-like/quant/codebooks_data.h"
#include "tests/support/quant_fields.h"

namespace infer::test {

// For a row of `n` values in blocks of the type, aligned as the structs of the formats need.
inline std::vector<uint64_t> block_buffer(const TypeTraits& t, int64_t n) {
  return std::vector<uint64_t>(row_bytes(t.type, n) / 8 + 1);
}

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
  // Approximately normal with mean 0 and variance 1, without a library function: the sum of 12 uniform numbers.
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

inline constexpr int kReferenceIQ4NL[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

inline Fields take_apart_q4_0(const BlockBits& bits) {
  Fields f;
  f.d = bits.half_at(0);
  for (int i = 0; i < 32; ++i) {
    const int code = bits(16 + 8 * (i % 16) + (i < 16 ? 0 : 4), 4);
    f.code[i] = code - 8;
  }
  return f;
}

inline Fields take_apart_iq4_nl(const BlockBits& bits) {
  Fields f;
  f.d = bits.half_at(0);
  for (int i = 0; i < 32; ++i) {
    const int code = bits(16 + 8 * (i % 16) + (i < 16 ? 0 : 4), 4);
    f.code[i] = kReferenceIQ4NL[code];
  }
  return f;
}

inline Fields take_apart_q4_1(const BlockBits& bits) {
  Fields f;
  f.has_min = true;
  f.d = bits.half_at(0);
  f.m = bits.half_at(2);
  for (int i = 0; i < 32; ++i) f.code[i] = bits(32 + 8 * (i % 16) + (i < 16 ? 0 : 4), 4);
  return f;
}

inline Fields take_apart_q5_0(const BlockBits& bits) {
  Fields f;
  f.d = bits.half_at(0);
  for (int i = 0; i < 32; ++i) f.code[i] = bits(48 + 8 * (i % 16) + (i < 16 ? 0 : 4), 4) + 16 * bits(16 + i, 1) - 16;
  return f;
}

inline Fields take_apart_q5_1(const BlockBits& bits) {
  Fields f;
  f.has_min = true;
  f.d = bits.half_at(0);
  f.m = bits.half_at(2);
  for (int i = 0; i < 32; ++i) f.code[i] = bits(64 + 8 * (i % 16) + (i < 16 ? 0 : 4), 4) + 16 * bits(32 + i, 1);
  return f;
}

inline Fields take_apart_q8_0(const BlockBits& bits) {
  Fields f;
  f.d = bits.half_at(0);
  for (int i = 0; i < 32; ++i) f.code[i] = bits.int8_at(2 + i);
  return f;
}

inline Fields take_apart_mxfp4(const BlockBits& bits) {
  Fields f;
  // A real E2M1 value is (1 + mantissa / 2) * 2^(exponent - 1), or mantissa / 2 when the exponent is 0.
  f.d = std::ldexp(1.0, bits(0, 8) - 128);
  for (int i = 0; i < 32; ++i) {
    const int first = 8 + 8 * (i % 16) + (i < 16 ? 0 : 4);
    const int mantissa = bits(first, 1), exponent = bits(first + 1, 2), sign = bits(first + 3, 1) ? -1 : 1;
    f.code[i] = sign * (exponent == 0 ? mantissa : (2 + mantissa) << (exponent - 1));
  }
  return f;
}

inline Fields take_apart_q2_k(const BlockBits& bits) {
  Fields f;
  f.n = 256;
  f.sub = 16;
  f.has_min = true;
  f.d = bits.half_at(80);
  f.m = bits.half_at(82);
  for (int s = 0; s < 16; ++s) {
    f.scale[s] = bits(8 * s, 4);
    f.min[s] = bits(8 * s + 4, 4);
  }
  for (int i = 0; i < 256; ++i) f.code[i] = bits(8 * (16 + i / 128 * 32 + i % 32) + i % 128 / 32 * 2, 2);
  return f;
}

inline Fields take_apart_q3_k(const BlockBits& bits) {
  Fields f;
  f.n = 256;
  f.sub = 16;
  f.d = bits.half_at(108);
  for (int s = 0; s < 16; ++s) {
    const int low = s < 8 ? bits(8 * (96 + s), 4) : bits(8 * (96 + s - 8) + 4, 4);
    f.scale[s] = low + 16 * bits(8 * (104 + s % 4) + s / 4 * 2, 2) - 32;
  }
  for (int i = 0; i < 256; ++i) {
    const int low = bits(8 * (32 + i / 128 * 32 + i % 32) + i % 128 / 32 * 2, 2);
    f.code[i] = low - (bits(8 * (i % 32) + i / 32, 1) ? 0 : 4);
  }
  return f;
}

inline Fields take_apart_k45(const BlockBits& bits, bool five) {
  Fields f;
  f.n = 256;
  f.has_min = true;
  f.d = bits.half_at(0);
  f.m = bits.half_at(2);
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
  return f;
}
inline Fields take_apart_q4_k(const BlockBits& bits) { return take_apart_k45(bits, false); }
inline Fields take_apart_q5_k(const BlockBits& bits) { return take_apart_k45(bits, true); }

inline Fields take_apart_q6_k(const BlockBits& bits) {
  Fields f;
  f.n = 256;
  f.sub = 16;
  f.d = bits.half_at(208);
  for (int s = 0; s < 16; ++s) f.scale[s] = bits.int8_at(192 + s);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, quarter = i % 128 / 32, k = i % 32;
    const int low = bits(8 * (64 * half + 32 * (quarter % 2) + k) + (quarter < 2 ? 0 : 4), 4);
    f.code[i] = low + 16 * bits(8 * (128 + 32 * half + k) + 2 * quarter, 2) - 32;
  }
  return f;
}

inline Fields take_apart_iq4_xs(const BlockBits& bits) {
  Fields f;
  f.n = 256;
  f.d = bits.half_at(0);
  for (int s = 0; s < 8; ++s) f.scale[s] = bits(32 + 4 * s, 4) + 16 * bits(16 + 2 * s, 2) - 32;
  for (int i = 0; i < 256; ++i)
    f.code[i] = kReferenceIQ4NL[bits(8 * (8 + i / 32 * 16 + i % 16) + (i % 32 < 16 ? 0 : 4), 4)];
  return f;
}

inline Fields take_apart_q8_k(const BlockBits& bits) {
  Fields f;
  f.n = 256;
  float d = 0;
  const int raw = bits(0, 16) | bits(16, 16) << 16;
  static_assert(sizeof d == sizeof raw);
  d = __builtin_bit_cast(float, raw);
  f.sub = 256;
  f.scale[0] = 1;
  f.d = d;
  for (int i = 0; i < 256; ++i) f.code[i] = bits.int8_at(4 + i);
  return f;
}

inline constexpr int kReferenceIQ2[3] = {8, 25, 43};
inline constexpr int kReferenceIQ3XXS[8] = {4, 12, 20, 28, 36, 44, 52, 62};

inline Fields take_apart_q1_0(const BlockBits& bits) {
  Fields f;
  f.n = f.sub = 128;
  f.d = bits.half_at(0);
  f.scale[0] = 1;
  for (int i = 0; i < 128; ++i) f.code[i] = bits(16 + i, 1) ? 1 : -1;
  return f;
}

inline Fields take_apart_q2_0(const BlockBits& bits) {
  Fields f;
  f.n = f.sub = 64;
  f.d = bits.half_at(0);
  f.scale[0] = 1;
  for (int i = 0; i < 64; ++i) f.code[i] = bits(16 + 2 * i, 2) - 1;
  return f;
}

// Scales are counted in units of the smallest one.
inline Fields take_apart_nvfp4(const BlockBits& bits) {
  constexpr int kMagnitudes[8] = {0, 1, 2, 3, 4, 6, 8, 12};  // doubled
  Fields f;
  f.n = 64;
  f.sub = 16;
  f.d = 0x1p-10;
  for (int s = 0; s < 4; ++s) {
    const int mantissa = bits(8 * s, 3), exponent = bits(8 * s + 3, 4);
    f.scale[s] = exponent == 0 ? mantissa : (8 + mantissa) << (exponent - 1);
    if (bits(8 * s, 8) == 0x7f) f.scale[s] = 0;
  }
  for (int i = 0; i < 64; ++i) {
    const int at = 32 + 8 * (i / 16 * 8 + i % 8) + (i % 16 < 8 ? 0 : 4);
    f.code[i] = kMagnitudes[bits(at, 3)] * (bits(at + 3, 1) ? -1 : 1);
  }
  return f;
}

inline Fields take_apart_tq1_0(const BlockBits& bits) {
  Fields f;
  f.n = f.sub = 256;
  f.d = bits.half_at(52);
  f.scale[0] = 1;
  int i = 0;
  const auto digits = [&](int first, int bytes, int count) {
    for (int digit = 0; digit < count; ++digit) {
      for (int k = 0; k < bytes; ++k, ++i) {
        // The fraction's next digits in base three, one after the other.
        int fraction = bits(8 * (first + k), 8);
        for (int n = 0; n < digit; ++n) fraction = fraction * 3 % 256;
        f.code[i] = fraction * 3 / 256 - 1;
      }
    }
  };
  digits(0, 32, 5);
  digits(32, 16, 5);
  digits(48, 4, 4);
  return f;
}

inline Fields take_apart_tq2_0(const BlockBits& bits) {
  Fields f;
  f.n = f.sub = 256;
  f.d = bits.half_at(64);
  f.scale[0] = 1;
  for (int i = 0; i < 256; ++i) f.code[i] = bits(8 * (i / 128 * 32 + i % 32) + i % 128 / 32 * 2, 2) - 1;
  return f;
}

// An eighth or a quarter of F16's d is exact in double.
inline Fields codebook_fields(double d, int sub) {
  Fields f;
  f.n = 256;
  f.sub = sub;
  f.d = d;
  return f;
}

// Fills in eight values: magnitudes times signs.
inline void set_magnitudes(Fields& f, int first, int entry, int signs) {
  for (int i = 0; i < 8; ++i) f.code[first + i] = kReferenceIQ2[entry >> 2 * i & 3] * (signs >> i & 1 ? -1 : 1);
}
inline int with_eighth_sign(int seven) { return seven + (std::popcount(static_cast<unsigned>(seven)) % 2 ? 128 : 0); }

inline Fields take_apart_iq2_xxs(const BlockBits& bits) {
  Fields f = codebook_fields(bits.half_at(0) / 8, 32);
  for (int s = 0; s < 8; ++s) {
    const int at = 16 + 64 * s;
    f.scale[s] = 2 * bits(at + 60, 4) + 1;
    for (int k = 0; k < 4; ++k) {
      set_magnitudes(f, 32 * s + 8 * k, kPackedIQ2XXS[bits(at + 8 * k, 8)], with_eighth_sign(bits(at + 32 + 7 * k, 7)));
    }
  }
  return f;
}

inline Fields take_apart_iq2_xs(const BlockBits& bits) {
  Fields f = codebook_fields(bits.half_at(0) / 8, 16);
  for (int s = 0; s < 16; ++s) f.scale[s] = 2 * bits(8 * 66 + 4 * s, 4) + 1;
  for (int g = 0; g < 32; ++g) {
    const int at = 16 + 16 * g;
    set_magnitudes(f, 8 * g, kPackedIQ2XS[bits(at, 9)], with_eighth_sign(bits(at + 9, 7)));
  }
  return f;
}

inline Fields take_apart_iq2_s(const BlockBits& bits) {
  Fields f = codebook_fields(bits.half_at(0) / 8, 16);
  for (int s = 0; s < 16; ++s) f.scale[s] = 2 * bits(8 * 74 + 4 * s, 4) + 1;
  for (int g = 0; g < 32; ++g) {
    const int index = bits(16 + 8 * g, 8) + 256 * bits(8 * 66 + 2 * g, 2);
    set_magnitudes(f, 8 * g, kPackedIQ2S[index], bits(8 * 34 + 8 * g, 8));
  }
  return f;
}

inline Fields take_apart_iq3_xxs(const BlockBits& bits) {
  Fields f = codebook_fields(bits.half_at(0) / 4, 32);
  for (int s = 0; s < 8; ++s) f.scale[s] = 2 * bits(8 * 66 + 32 * s + 28, 4) + 1;
  for (int i = 0; i < 256; ++i) {
    const int entry = kPackedIQ3XXS[bits(16 + 8 * (i / 4), 8)];
    const int signs = with_eighth_sign(bits(8 * 66 + 32 * (i / 32) + 7 * (i / 8 % 4), 7));
    f.code[i] = kReferenceIQ3XXS[entry >> 3 * (i % 4) & 7] * (signs >> i % 8 & 1 ? -1 : 1);
  }
  return f;
}

inline Fields take_apart_iq3_s(const BlockBits& bits) {
  Fields f = codebook_fields(bits.half_at(0), 32);
  for (int s = 0; s < 8; ++s) f.scale[s] = 2 * bits(8 * 106 + 4 * s, 4) + 1;
  for (int i = 0; i < 256; ++i) {
    const int entry = kPackedIQ3S[bits(16 + 8 * (i / 4), 8) + 256 * bits(8 * 66 + i / 4, 1)];
    const int magnitude = 2 * (entry >> 3 * (i % 4) & 7) + 1;
    f.code[i] = bits(8 * 74 + i, 1) ? -magnitude : magnitude;
  }
  return f;
}

// Fills in eight values: ternary ones times eight, plus or minus one.
inline void set_ternary(Fields& f, int first, int entry, int minus) {
  for (int i = 0; i < 8; ++i) f.code[first + i] = 8 * ((entry >> 2 * i & 3) - 1) + (minus ? -1 : 1);
}

inline Fields take_apart_iq1_s(const BlockBits& bits) {
  Fields f = codebook_fields(bits.half_at(0) / 8, 32);
  for (int g = 0; g < 32; ++g) {
    const int high = 8 * 34 + 16 * (g / 4);
    f.scale[g / 4] = 2 * bits(high + 12, 3) + 1;
    const int index = bits(16 + 8 * g, 8) + 256 * bits(high + 3 * (g % 4), 3);
    set_ternary(f, 8 * g, kPackedIQ1[index], bits(high + 15, 1));
  }
  return f;
}

inline Fields take_apart_iq1_m(const BlockBits& bits) {
  int d = 0;
  for (int j = 0; j < 4; ++j) d += bits(8 * 48 + 16 * j + 12, 4) << 4 * j;
  Fields f = codebook_fields(half_value(static_cast<uint32_t>(d)) / 8, 16);
  for (int s = 0; s < 16; ++s) f.scale[s] = 2 * bits(8 * 48 + 16 * (s / 4) + 3 * (s % 4), 3) + 1;
  for (int g = 0; g < 32; ++g) {
    const int high = 8 * 32 + 4 * g;
    set_ternary(f, 8 * g, kPackedIQ1[bits(8 * g, 8) + 256 * bits(high, 3)], bits(high + 3, 1));
  }
  return f;
}

struct QuantRecord {
  std::string_view name;
  Fields (*take_apart)(const BlockBits& bits);
  size_t bytes;  // of 256 values, from the documented bits per weight
  int d, m;      // byte offsets of the F16 scale and the F16 minimum in the block; -1: none
  // FNV-1a over the bits of 16384 values (NaN as 0x7fc00000) decoded from the bits of Random(12), computed once by the
  // decoders of llama.cpp (release v0.5.0, reference code of libggml-base).
  uint64_t decoded;
  double rmse;  // for a normal distribution with variance 1, when it was recorded
  // Relative errors of llama.cpp's encoders (ggml_quantize_chunk of release v0.5.0) on make_rows() of each
  // distribution, and the weighted errors with make_importance(); where it requires importance, plain is with ones.
  // Zeros: the format has no encoder that searches.
  double plain[5], weighted[5];

  bool has_encoder() const { return plain[0] > 0; }
};

// clang-format off
inline constexpr QuantRecord kQuantRecords[] = {
    {"Q4_0", take_apart_q4_0, 144, 0, -1, 0xd7ff8cace3529169u, 0.08015,
     {0.08483, 0.10709, 0.11410, 0.14551, 0.12754}, {0.07085, 0.09176, 0.10097, 0.12497, 0.10881}},
    {"Q4_1", take_apart_q4_1, 160, 0, 2, 0x616d65f6f146e1bdu, 0.06914,
     {0.07758, 0.09132, 0.09270, 0.10979, 0.10197}, {0.05595, 0.06599, 0.06831, 0.07249, 0.07298}},
    {"Q5_0", take_apart_q5_0, 176, 0, -1, 0x90e8066cec783db1u, 0.03974,
     {0.04217, 0.05328, 0.05696, 0.08761, 0.06447}, {0.03510, 0.04619, 0.05016, 0.07581, 0.05584}},
    {"Q5_1", take_apart_q5_1, 192, 0, 2, 0xd8e3ded82ce37770u, 0.03338,
     {0.03761, 0.04443, 0.04482, 0.05257, 0.04968}, {0.02705, 0.03201, 0.03296, 0.03579, 0.03491}},
    {"Q8_0", take_apart_q8_0, 272, 0, -1, 0xe39899635246d8e0u, 0.005056,
     {0.00529, 0.00670, 0.00714, 0.01123, 0.00811}, {0.00521, 0.00655, 0.00705, 0.00987, 0.00764}},
    {"Q2_K", take_apart_q2_k, 84, 80, 82, 0xee41d9f12165c26cu, 0.27024,
     {0.29412, 0.34287, 0.34085, 0.24093, 0.37497}, {0.20081, 0.22433, 0.23195, 0.18990, 0.22898}},
    {"Q3_K", take_apart_q3_k, 110, 108, -1, 0x436c64c87de8ee97u, 0.1438,
     {0.14978, 0.17589, 0.18239, 0.14691, 0.19438}, {0.11968, 0.14432, 0.15083, 0.12451, 0.15372}},
    {"Q4_K", take_apart_q4_k, 144, 0, 2, 0x426562cbde57deb9u, 0.069506,
     {0.07097, 0.08422, 0.08593, 0.09826, 0.09471}, {0.05702, 0.06772, 0.07073, 0.07550, 0.07530}},
    {"Q5_K", take_apart_q5_k, 176, 0, 2, 0x96197fca7d0a4e89u, 0.034305,
     {0.03586, 0.04274, 0.04351, 0.05061, 0.04818}, {0.02961, 0.03556, 0.03691, 0.03953, 0.03902}},
    {"Q6_K", take_apart_q6_k, 210, 208, -1, 0x933d468b1523d286u, 0.01637,
     {0.01756, 0.02167, 0.02234, 0.03223, 0.02528}, {0.01446, 0.01855, 0.01935, 0.02676, 0.02122}},
    {"Q8_K", take_apart_q8_k, 292, -1, -1, 0x9a705b2ae88c9ac7u, 0.006818,
     {}, {}},
    {"IQ4_NL", take_apart_iq4_nl, 144, 0, -1, 0xfe4b1c558364cf1eu, 0.07287,
     {0.07564, 0.08766, 0.09214, 0.12066, 0.10033}, {0.06397, 0.07431, 0.07878, 0.09805, 0.08275}},
    {"IQ4_XS", take_apart_iq4_xs, 136, 0, -1, 0xfd2940233812b185u, 0.07352,
     {0.07622, 0.08846, 0.09305, 0.12234, 0.10132}, {0.06484, 0.07545, 0.08055, 0.10137, 0.08418}},
    {"MXFP4", take_apart_mxfp4, 136, -1, -1, 0x9a5c408a17557a88u, 0.1117,
     {0.11310, 0.12547, 0.12989, 0.16855, 0.14118}, {0.11364, 0.12744, 0.12969, 0.14194, 0.14089}},
    {"IQ2_XXS", take_apart_iq2_xxs, 66, 0, -1, 0xfda62c2f230acc15u, 0.332635,
     {0.34361, 0.38403, 0.40347, 0.77829, 0.46479}, {0.25914, 0.29660, 0.32041, 0.55961, 0.37483}},
    {"IQ2_XS", take_apart_iq2_xs, 74, 0, -1, 0x786bfcf0ea57b329u, 0.287406,
     {0.29902, 0.32846, 0.33997, 0.58789, 0.38250}, {0.22254, 0.25806, 0.27246, 0.42912, 0.28975}},
    {"IQ2_S", take_apart_iq2_s, 82, 0, -1, 0xc8d2fd89dc81bf12u, 0.239438,
     {0.26215, 0.32243, 0.33121, 0.60996, 0.39504}, {0.20113, 0.24018, 0.25221, 0.40527, 0.27355}},
    {"IQ3_XXS", take_apart_iq3_xxs, 98, 0, -1, 0x0dd496c79584de22u, 0.177982,
     {0.21245, 0.24668, 0.25155, 0.33569, 0.28716}, {0.12775, 0.14335, 0.15156, 0.23206, 0.15990}},
    {"IQ3_S", take_apart_iq3_s, 110, 0, -1, 0xd65eac202c5b6506u, 0.128367,
     {0.16448, 0.19607, 0.19342, 0.28700, 0.22131}, {0.10393, 0.12310, 0.13105, 0.21157, 0.14142}},
    {"IQ1_S", take_apart_iq1_s, 50, 0, -1, 0xd0cb040faf11faebu, 0.459825,
     {0.48037, 0.54183, 0.57661, 0.67912, 0.60155}, {0.39261, 0.43156, 0.46453, 0.52361, 0.45893}},
    {"IQ1_M", take_apart_iq1_m, 56, -1, -1, 0xe11bf7881033c7a5u, 0.424502,
     {0.44830, 0.48033, 0.49889, 0.52897, 0.49970}, {0.33225, 0.35420, 0.37177, 0.40148, 0.35180}},
    {"TQ1_0", take_apart_tq1_0, 54, 52, -1, 0x4cce802800afc71au, 0.433491,
     {0.80219, 0.83596, 0.85155, 0.52822, 0.81068}, {0.79719, 0.81574, 0.84813, 0.44658, 0.75156}},
    {"TQ2_0", take_apart_tq2_0, 66, 64, -1, 0xf4e702ad10472117u, 0.433491,
     {0.80219, 0.83596, 0.85155, 0.52822, 0.81068}, {0.79719, 0.81574, 0.84813, 0.44658, 0.75156}},
    {"NVFP4", take_apart_nvfp4, 144, -1, -1, 0xe629a3d477c24b06u, 0.0858255,
     {0.10326, 0.09668, 0.09566, 0.09310, 0.09391}, {0.10197, 0.09402, 0.09448, 0.08128, 0.08737}},
    {"Q1_0", take_apart_q1_0, 36, 0, -1, 0x4e723a7923641d25u, 0.599559,
     {0.59530, 0.70218, 0.69543, 0.90413, 0.77742}, {0.59650, 0.70878, 0.69642, 0.92083, 0.79785}},
    {"Q2_0", take_apart_q2_0, 72, 0, -1, 0xc5ecc1cae4f17747u, 0.350563,
     {0.71433, 0.72589, 0.73738, 0.40388, 0.68872}, {0.70468, 0.71257, 0.73307, 0.34814, 0.63776}},
};
// clang-format on

// REQUIRES a type with a record.
inline Fields take_apart(std::string_view type, const void* block) {
  for (const QuantRecord& record : kQuantRecords) {
    if (record.name == type) return record.take_apart({static_cast<const uint8_t*>(block)});
  }
  std::abort();
}

}  // namespace infer::test
