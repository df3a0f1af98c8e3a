// Blocks of the quantized formats, byte for byte as in GGUF files (little endian). Plain C structs for C++ and CUDA;
// halves are stored as their bits in uint16_t (half.h converts). A block needs the alignment of its struct.
//
// In the comments, i is the index of a value in its block, x[i] its value, d and m are F32 after conversion. Nibbles:
// "low" means bits 0..3 of a byte. No product of scales and code below loses a bit in F32 (at most 11 + 8 + 5 bits), so
// x[i] is rounded at most once: when a minimum is added.
#pragma once

#include <stdint.h>

namespace infer {

// Values per block of the two families.
constexpr int kBlock32 = 32;
constexpr int kBlock256 = 256;

// ---- Blocks of 32 ----

// 4.5 bits per weight. x[i] = d * (code[i] - 8); codes 0..15 in the low nibbles, 16..31 in the high ones.
struct BlockQ4_0 {
  uint16_t d;
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ4_0) == 18, "layout of Q4_0");

// 5 bits per weight. x[i] = d * code[i] + m; codes as in Q4_0.
struct BlockQ4_1 {
  uint16_t d;
  uint16_t m;
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ4_1) == 20, "layout of Q4_1");

// 5.5 bits per weight. x[i] = d * (code[i] - 16); low four bits as in Q4_0, bit 4 is bit i of qh (little endian).
struct BlockQ5_0 {
  uint16_t d;
  uint8_t qh[4];
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ5_0) == 22, "layout of Q5_0");

// 6 bits per weight. x[i] = d * code[i] + m; codes as in Q5_0.
struct BlockQ5_1 {
  uint16_t d;
  uint16_t m;
  uint8_t qh[4];
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ5_1) == 24, "layout of Q5_1");

// 8.5 bits per weight. x[i] = d * qs[i].
struct BlockQ8_0 {
  uint16_t d;
  int8_t qs[32];
};
static_assert(sizeof(BlockQ8_0) == 34, "layout of Q8_0");

// 4.5 bits per weight. x[i] = d * kIQ4NLValues[code[i]]; codes as in Q4_0.
struct BlockIQ4_NL {
  uint16_t d;
  uint8_t qs[16];
};
static_assert(sizeof(BlockIQ4_NL) == 18, "layout of IQ4_NL");

// 4.25 bits per weight. x[i] = 2^(e - 128) * kMXFP4Values[code[i]]; codes as in Q4_0. All 256 values of e are powers of
// two (0 and 1 give denormals, 255 is not NaN); from e = 253 on, the largest codes overflow to infinity.
struct BlockMXFP4 {
  uint8_t e;
  uint8_t qs[16];
};
static_assert(sizeof(BlockMXFP4) == 17, "layout of MXFP4");

// ---- Super-blocks of 256: s = i / 16 or i / 32 counts the sub-blocks ----

// 2.625 bits per weight. x[i] = d * sc[s] * code[i] - dmin * m[s], 16 sub-blocks of 16; sc is the low nibble of
// scales[s], m the high one. Code i is bits 2k, 2k+1 of qs[32 * (i / 128) + i % 32], k = i / 32 % 4.
struct BlockQ2_K {
  uint8_t scales[16];
  uint8_t qs[64];
  uint16_t d;
  uint16_t dmin;
};
static_assert(sizeof(BlockQ2_K) == 84, "layout of Q2_K");

// 3.4375 bits per weight. x[i] = d * (sc[s] - 32) * (code[i] - 4), 16 sub-blocks of 16. Low two bits of the codes as in
// Q2_K, bit 2 is bit i / 32 of hmask[i % 32]. Low four bits of sc[s]: nibble s / 8 of scales[s % 8]; high two: bits
// 2k, 2k+1 of scales[8 + s % 4], k = s / 4.
struct BlockQ3_K {
  uint8_t hmask[32];
  uint8_t qs[64];
  uint8_t scales[12];
  uint16_t d;
};
static_assert(sizeof(BlockQ3_K) == 110, "layout of Q3_K");

// 4.5 bits per weight. x[i] = d * sc[s] * code[i] - dmin * m[s], 8 sub-blocks of 32. Code i is nibble i / 32 % 2 of
// qs[32 * (i / 64) + i % 32]. For s < 4: sc[s] and m[s] are the low six bits of scales[s] and scales[4 + s]; for s >= 4
// their low four bits are the low and the high nibble of scales[4 + s], their high two bits are the high two bits of
// scales[s - 4] and scales[s].
struct BlockQ4_K {
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];
  uint8_t qs[128];
};
static_assert(sizeof(BlockQ4_K) == 144, "layout of Q4_K");

// 5.5 bits per weight. As Q4_K; bit 4 of code i is bit i / 32 of qh[i % 32].
struct BlockQ5_K {
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];
  uint8_t qh[32];
  uint8_t qs[128];
};
static_assert(sizeof(BlockQ5_K) == 176, "layout of Q5_K");

// 6.5625 bits per weight. x[i] = d * scales[s] * (code[i] - 32), 16 sub-blocks of 16. With h = i / 128: low four bits
// are nibble i / 64 % 2 of ql[64 * h + i % 64], high two are bits 2k, 2k+1 of qh[32 * h + i % 32], k = i / 32 % 4.
struct BlockQ6_K {
  uint8_t ql[128];
  uint8_t qh[64];
  int8_t scales[16];
  uint16_t d;
};
static_assert(sizeof(BlockQ6_K) == 210, "layout of Q6_K");

// 4.25 bits per weight. x[i] = d * (sc[s] - 32) * kIQ4NLValues[code[i]], 8 sub-blocks of 32. Code i is nibble i / 16 %
// 2 of qs[16 * s + i % 16]. Low four bits of sc[s]: nibble s % 2 of scales_l[s / 2]; high two: bits 2s, 2s+1 of
// scales_h.
struct BlockIQ4_XS {
  uint16_t d;
  uint16_t scales_h;
  uint8_t scales_l[4];
  uint8_t qs[128];
};
static_assert(sizeof(BlockIQ4_XS) == 136, "layout of IQ4_XS");

// 9.125 bits per value. x[i] = d * qs[i]; bsums[s] is the sum of qs over sub-block s of 16. Supported for files that
// contain it; never a weight type of a matmul.
struct BlockQ8_K {
  float d;
  int8_t qs[256];
  int16_t bsums[16];
};
static_assert(sizeof(BlockQ8_K) == 292, "layout of Q8_K");

}  // namespace infer
