// Blocks of the quantized formats, byte for byte as in GGUF files (little endian). Plain C structs for C++ and CUDA;
// fp16 values are stored as their bits in uint16_t (half.h converts). A block needs the alignment of its struct.
//
// In the comments, i is the index of a value in its block, x[i] its value, d and m are F32 after conversion. Nibbles:
// "low" means bits 0..3 of a byte. No product of scales and code below loses a bit in F32 (at most 11 + 8 + 5 bits), so
// x[i] is rounded at most once: when a minimum is added.
#pragma once

#include <stdint.h>

namespace infer {

// Values per block of the two families, and of the formats whose blocks are made of several blocks of 32.
constexpr int kBlock32 = 32;
constexpr int kBlock256 = 256;
constexpr int kBlockQ1_0 = 128;
constexpr int kBlockQ2_0 = 64;
constexpr int kBlockNVFP4 = 64;

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

// ---- Blocks of 64 and 128, multiplied 32 values at a time ----

// 1.125 bits per weight. x[i] = d if bit i of qs (little endian) is set, else -d.
struct BlockQ1_0 {
  uint16_t d;
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ1_0) == 18, "layout of Q1_0");

// 2.25 bits per weight. x[i] = d * (code[i] - 1); code i is bits 2k, 2k+1 of qs[i / 4], k = i % 4.
struct BlockQ2_0 {
  uint16_t d;
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ2_0) == 18, "layout of Q2_0");

// 4.5 bits per weight. x[i] = d[i / 16] / 2 * kMXFP4Values[code[i]]; d is E4M3 without a sign (half.h). With s = i /
// 16, code i is nibble i / 8 % 2 of qs[8 * s + i % 8].
struct BlockNVFP4 {
  uint8_t d[4];
  uint8_t qs[32];
};
static_assert(sizeof(BlockNVFP4) == 36, "layout of NVFP4");

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

// 1.6875 bits per weight. x[i] = d * (code[i] - 1), codes 0..2. A byte b holds five codes as a fraction b / 256 in base
// three, rounded up: digit n, from the first, is 3 * (b * 3^n % 256) / 256. Byte m of qs[0..32) holds the codes m + 32
// n; byte 32 + m the codes 160 + m + 16 n; and byte m of qh, with four digits, the codes 240 + m + 4 n.
struct BlockTQ1_0 {
  uint8_t qs[48];
  uint8_t qh[4];
  uint16_t d;
};
static_assert(sizeof(BlockTQ1_0) == 54, "layout of TQ1_0");

// 2.0625 bits per weight. x[i] = d * (code[i] - 1); codes as in Q2_K.
struct BlockTQ2_0 {
  uint8_t qs[64];
  uint16_t d;
};
static_assert(sizeof(BlockTQ2_0) == 66, "layout of TQ2_0");

// ---- Super-blocks of 256 with codebooks (codebooks_data.h) ----
//
// g = i / 8 counts the groups of 8 values; "signs" has a bit per value of a group, set for negative values. Where only
// seven bits are stored, bit 7 makes the number of set bits even.

// 2.0625 bits per weight. x[i] = d / 8 * (2 sc[i / 32] + 1) * magnitude * sign, magnitudes from kIQ2XXSGrid. Each 32
// values have four uint16: the four bytes of the first two are indices; the other two form a 32-bit number with four
// times seven bits of signs and sc in bits 28..31.
struct BlockIQ2_XXS {
  uint16_t d;
  uint16_t qs[32];
};
static_assert(sizeof(BlockIQ2_XXS) == 66, "layout of IQ2_XXS");

// 2.3125 bits per weight. x[i] = d / 8 * (2 sc[i / 16] + 1) * magnitude * sign, magnitudes from kIQ2XSGrid; sc[s] is
// nibble s % 2 of scales[s / 2]. Bits 0..8 of qs[g] are the index, the others seven signs.
struct BlockIQ2_XS {
  uint16_t d;
  uint16_t qs[32];
  uint8_t scales[8];
};
static_assert(sizeof(BlockIQ2_XS) == 74, "layout of IQ2_XS");

// 2.5625 bits per weight. As IQ2_XS, magnitudes from kIQ2SGrid: bits 0..7 of the index are qs[g], bits 8 and 9 are bits
// 2k, 2k+1 of qh[g / 4], k = g % 4.
struct BlockIQ2_S {
  uint16_t d;
  uint8_t qs[32];
  uint8_t signs[32];
  uint8_t qh[8];
  uint8_t scales[8];
};
static_assert(sizeof(BlockIQ2_S) == 82, "layout of IQ2_S");

// 3.0625 bits per weight. x[i] = d / 4 * (2 sc[i / 32] + 1) * magnitude * sign, magnitudes of four values from
// kIQ3XXSGrid[qs[i / 4]]. signs_and_scales has 32 bits for each 32 values, with signs and sc as in IQ2_XXS.
struct BlockIQ3_XXS {
  uint16_t d;
  uint8_t qs[64];
  uint8_t signs_and_scales[32];
};
static_assert(sizeof(BlockIQ3_XXS) == 98, "layout of IQ3_XXS");

// 3.4375 bits per weight. x[i] = d * (2 sc[i / 32] + 1) * magnitude * sign, magnitudes of four values from kIQ3SGrid:
// bits 0..7 of the index are qs[i / 4], bit 8 is bit i / 4 % 8 of qh[i / 32]. sc[s] is nibble s % 2 of scales[s / 2].
struct BlockIQ3_S {
  uint16_t d;
  uint8_t qs[64];
  uint8_t qh[8];
  uint8_t signs[32];
  uint8_t scales[4];
};
static_assert(sizeof(BlockIQ3_S) == 110, "layout of IQ3_S");

// 1.5625 bits per weight. x[i] = d / 8 * (2 sc[i / 32] + 1) * (8 t + delta), t = -1, 0 or 1 from kIQ1Grid. Of qh[i /
// 32], bits 3k..3k+2 are bits 8..10 of the index of group k = g % 4, bits 12..14 are sc, and delta is -1 if bit 15 is
// set, else 1. Bits 0..7 of the index are qs[g].
struct BlockIQ1_S {
  uint16_t d;
  uint8_t qs[32];
  uint16_t qh[8];
};
static_assert(sizeof(BlockIQ1_S) == 50, "layout of IQ1_S");

// 1.75 bits per weight. As IQ1_S with a scale per 16 and a delta per group: nibble g % 2 of qh[g / 2] has bits 8..10 of
// the index, and bit 3 makes delta -1. With the bytes of scales as four uint16 w[4], sc[s] is bits 3k..3k+2 of w[s /
// 4], k = s % 4, and nibble j of the bits of d is bits 12..15 of w[j].
struct BlockIQ1_M {
  uint8_t qs[32];
  uint8_t qh[16];
  uint8_t scales[8];
};
static_assert(sizeof(BlockIQ1_M) == 56, "layout of IQ1_M");

// 9.125 bits per value. x[i] = d * qs[i]; bsums[s] is the sum of qs over sub-block s of 16. Supported for files that
// contain it; never a weight type of a matmul.
struct BlockQ8_K {
  float d;
  int8_t qs[256];
  int16_t bsums[16];
};
static_assert(sizeof(BlockQ8_K) == 292, "layout of Q8_K");

}  // namespace infer
