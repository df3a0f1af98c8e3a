// Unpacks rows of weights in the file's own formats (see ggml-like/quant/blocks.h), 16 values at a time:
//   x[i] = scale * code[i] + offset
// load_group returns the codes as floats. In quantized types they are bytes, and load_codes returns four in a word.
// Compiled once per type, selected by -DTYPE_...; offsets are in bytes. A unit test compares the sizes here with
// blocks.h. The including file declares `uint weight_words[]`.

uint load32(uint at) {
  const uint word = at >> 2, shift = (at & 3u) * 8u;
  return shift == 0u ? weight_words[word] : weight_words[word] >> shift | weight_words[word + 1] << (32u - shift);
}
uint load16(uint at) {  // reads no word after the one with the second byte
  const uint low = weight_words[at >> 2] >> ((at & 3u) * 8u);
  return (at & 3u) == 3u ? (low | weight_words[(at >> 2) + 1] << 8) & 0xffffu : low & 0xffffu;
}
uint load8(uint at) { return weight_words[at >> 2] >> ((at & 3u) * 8u) & 0xffu; }

vec4 bytes4(uint w) { return vec4(w & 0xffu, w >> 8 & 0xffu, w >> 16 & 0xffu, w >> 24); }
vec4 signed4(uint w) { return vec4(int(w << 24) >> 24, int(w << 16) >> 24, int(w << 8) >> 24, int(w) >> 24); }
// Subtracts the four bytes of `less` from four bytes below 128, as signed bytes; bit 7 keeps borrows from crossing
// bytes.
uint minus4(uint w, uint less) { return (w | 0x80808080u) - less ^ 0x80808080u; }
// One bit of each of four bytes, moved to bit 4.
uint bit_of_bytes(uint w, uint bit) { return (w >> bit & 0x01010101u) << 4; }
// Four consecutive bits of a word, each at bit 4 of a byte.
uint spread4(uint bits) {
  return (bits & 1u) << 4 | (bits & 2u) << 11 | (bits & 4u) << 18 | (bits & 8u) << 25;
}

// Four 2-bit fields, one to each byte.
uint spread_pairs(uint bits) { return (bits | bits << 6 | bits << 12 | bits << 18) & 0x03030303u; }

struct Group {
  vec4 code[4];
  float scale, offset;
};
struct Codes {
  uint word[4];  // signed bytes
  float scale, offset;
#ifdef TYPE_MXFP4
  float unit;  // the value is code * unit * scale, since one factor alone could be denormal
#endif
};

#if defined(TYPE_F32)
#define F32_BLOCK 1
#define F32_BYTES 4
#define HAS_TAIL
float value_at(uint at, uint i) { return uintBitsToFloat(weight_words[(at >> 2) + i]); }
#elif defined(TYPE_F16)
#define F16_BLOCK 1
#define F16_BYTES 2
#define HAS_TAIL
float value_at(uint at, uint i) { return half_to_float(load16(at + 2u * i)); }
#elif defined(TYPE_BF16)
#define BF16_BLOCK 1
#define BF16_BYTES 2
#define HAS_TAIL
float value_at(uint at, uint i) { return uintBitsToFloat(load16(at + 2u * i) << 16); }
#endif

#ifdef HAS_TAIL
// The last group of a row may be short: missing values are zero.
Group load_group(uint row_at, uint group, uint row_values) {
  Group g;
  g.scale = 1.0;
  g.offset = 0.0;
  const uint first = 16u * group;
#if defined(TYPE_F32)
  const uint at = row_at + 4u * first;
#else
  const uint at = row_at + 2u * first;
#endif
  if (first + 16u > row_values) {
    const uint left = row_values - first;
    for (uint j = 0u; j < 4u; ++j) {
      for (uint i = 0u; i < 4u; ++i) g.code[j][i] = 4u * j + i < left ? value_at(at, 4u * j + i) : 0.0;
    }
    return g;
  }
#if defined(TYPE_F32)
  for (uint j = 0u; j < 4u; ++j) {
    const uint w = (at >> 2) + 4u * j;
    g.code[j] = vec4(uintBitsToFloat(weight_words[w]), uintBitsToFloat(weight_words[w + 1]),
                     uintBitsToFloat(weight_words[w + 2]), uintBitsToFloat(weight_words[w + 3]));
  }
#else
  for (uint j = 0u; j < 4u; ++j) {
    const uint a = load32(at + 8u * j), b = load32(at + 8u * j + 4u);
#if defined(TYPE_F16)
    g.code[j] = vec4(unpackHalf2x16(a), unpackHalf2x16(b));
#else
    g.code[j] = vec4(uintBitsToFloat(a << 16), uintBitsToFloat(a & 0xffff0000u), uintBitsToFloat(b << 16),
                     uintBitsToFloat(b & 0xffff0000u));
#endif
  }
#endif
  return g;
}
#endif

// ---- Blocks of 32: codes 0..15 in the low nibbles, 16..31 in the high nibbles ----

#if defined(TYPE_Q4_0)
#define Q4_0_BLOCK 32
#define Q4_0_BYTES 18
#define HAS_NIBBLES32
const uint kBlockBytes = Q4_0_BYTES, kCodes = 2u;
#elif defined(TYPE_Q4_1)
#define Q4_1_BLOCK 32
#define Q4_1_BYTES 20
#define HAS_NIBBLES32
#define HAS_OFFSET
const uint kBlockBytes = Q4_1_BYTES, kCodes = 4u;
#elif defined(TYPE_Q5_0)
#define Q5_0_BLOCK 32
#define Q5_0_BYTES 22
#define HAS_NIBBLES32
const uint kBlockBytes = Q5_0_BYTES, kCodes = 6u;
#elif defined(TYPE_Q5_1)
#define Q5_1_BLOCK 32
#define Q5_1_BYTES 24
#define HAS_NIBBLES32
#define HAS_OFFSET
const uint kBlockBytes = Q5_1_BYTES, kCodes = 8u;
#elif defined(TYPE_IQ4_NL)
#define IQ4_NL_BLOCK 32
#define IQ4_NL_BYTES 18
#define HAS_NIBBLES32
#define HAS_TABLE
const uint kBlockBytes = IQ4_NL_BYTES, kCodes = 2u;
#elif defined(TYPE_MXFP4)
#define MXFP4_BLOCK 32
#define MXFP4_BYTES 17
#define HAS_NIBBLES32
#define HAS_TABLE
const uint kBlockBytes = MXFP4_BYTES, kCodes = 1u;
#elif defined(TYPE_IQ4_XS) || defined(TYPE_NVFP4)
#define HAS_TABLE
#endif

#ifdef HAS_TABLE
#if defined(TYPE_MXFP4) || defined(TYPE_NVFP4)
const int kValues[16] = int[16](0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
#else
const int kValues[16] = int[16](-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
#endif
uint values4(uint w) {
  return uint(kValues[w & 15u] & 0xff) | uint(kValues[w >> 8 & 15u] & 0xff) << 8 |
         uint(kValues[w >> 16 & 15u] & 0xff) << 16 | uint(kValues[w >> 24 & 15u]) << 24;
}
#endif

#ifdef HAS_NIBBLES32
Codes load_codes(uint row_at, uint group) {
  const uint block = row_at + (group >> 1) * kBlockBytes, high = group & 1u;
  Codes c;
  c.offset = 0.0;
#ifdef TYPE_MXFP4
  // 2^(e - 128) is scale * unit.
  const uint e = load8(block);
  c.scale = uintBitsToFloat((e < 128u ? e + 63u : e - 65u) << 23);
  c.unit = e < 128u ? 5.421010862427522e-20 : 18446744073709551616.0;  // 2^-64, 2^64
#else
  c.scale = half_to_float(load16(block));
#endif
#ifdef HAS_OFFSET
  c.offset = half_to_float(load16(block + 2u));
#endif
#if defined(TYPE_Q5_0) || defined(TYPE_Q5_1)
  const uint bits = load32(block + kCodes - 4u) >> (16u * high);
#endif
  for (uint j = 0u; j < 4u; ++j) {
    const uint w = load32(block + kCodes + 4u * j) >> (4u * high) & 0x0f0f0f0fu;
#if defined(TYPE_Q4_0)
    c.word[j] = minus4(w, 0x08080808u);
#elif defined(TYPE_Q4_1)
    c.word[j] = w;
#elif defined(TYPE_Q5_0)
    c.word[j] = minus4(w | spread4(bits >> (4u * j) & 15u), 0x10101010u);
#elif defined(TYPE_Q5_1)
    c.word[j] = w | spread4(bits >> (4u * j) & 15u);
#else
    c.word[j] = values4(w);
#endif
  }
  return c;
}
#endif

#ifdef TYPE_Q8_0
#define Q8_0_BLOCK 32
#define Q8_0_BYTES 34
Codes load_codes(uint row_at, uint group) {
  const uint block = row_at + (group >> 1) * Q8_0_BYTES;
  Codes c;
  c.scale = half_to_float(load16(block));
  c.offset = 0.0;
  for (uint j = 0u; j < 4u; ++j) c.word[j] = load32(block + 2u + 16u * (group & 1u) + 4u * j);
  return c;
}
#endif

// ---- Blocks of 64 and 128 ----

#ifdef TYPE_Q1_0
#define Q1_0_BLOCK 128
#define Q1_0_BYTES 18
Codes load_codes(uint row_at, uint group) {
  const uint block = row_at + (group >> 3) * Q1_0_BYTES, bits = load16(block + 2u + 2u * (group & 7u));
  Codes c;
  c.scale = half_to_float(load16(block));
  c.offset = 0.0;
  for (uint j = 0u; j < 4u; ++j) c.word[j] = minus4(spread4(bits >> (4u * j) & 15u) >> 3, 0x01010101u);
  return c;
}
#endif

#ifdef TYPE_Q2_0
#define Q2_0_BLOCK 64
#define Q2_0_BYTES 18
Codes load_codes(uint row_at, uint group) {
  const uint block = row_at + (group >> 2) * Q2_0_BYTES, bits = load32(block + 2u + 4u * (group & 3u));
  Codes c;
  c.scale = half_to_float(load16(block));
  c.offset = 0.0;
  for (uint j = 0u; j < 4u; ++j) c.word[j] = minus4(spread_pairs(bits >> (8u * j) & 255u), 0x01010101u);
  return c;
}
#endif

#ifdef TYPE_NVFP4
#define NVFP4_BLOCK 64
#define NVFP4_BYTES 36
Codes load_codes(uint row_at, uint group) {
  const uint block = row_at + (group >> 2) * NVFP4_BYTES, s = group & 3u;
  // E4M3 in units of its smallest value; 0x7f is zero.
  const uint bits = load8(block + s), e = bits >> 3 & 15u, m = bits & 7u;
  const uint units = bits == 0x7fu ? 0u : e == 0u ? m : (8u + m) << (e - 1u);
  Codes c;
  c.scale = float(units) * 0.0009765625;  // 2^-10
  c.offset = 0.0;
  for (uint j = 0u; j < 2u; ++j) {
    const uint w = weight_words[(block >> 2) + 1u + 2u * s + j];
    c.word[j] = values4(w & 0x0f0f0f0fu), c.word[2u + j] = values4(w >> 4 & 0x0f0f0f0fu);
  }
  return c;
}
#endif

// ---- Super-blocks of 256: `s` counts groups of 16 within the block ----

#ifdef TYPE_Q2_K
#define Q2_K_BLOCK 256
#define Q2_K_BYTES 84
#define HAS_OFFSET
Codes load_codes(uint row_at, uint group) {
  const uint block = row_at + (group >> 4) * Q2_K_BYTES, s = group & 15u;
  const uint packed = load8(block + s);
  Codes c;
  c.scale = half_to_float(load16(block + 80u)) * float(packed & 15u);
  c.offset = -half_to_float(load16(block + 82u)) * float(packed >> 4);
  const uint codes = block + 16u + 32u * (s >> 3) + 16u * (s & 1u), shift = 2u * (s >> 1 & 3u);
  for (uint j = 0u; j < 4u; ++j) c.word[j] = load32(codes + 4u * j) >> shift & 0x03030303u;
  return c;
}
#endif

#ifdef TYPE_Q3_K
#define Q3_K_BLOCK 256
#define Q3_K_BYTES 110
Codes load_codes(uint row_at, uint group) {
  const uint block = row_at + (group >> 4) * Q3_K_BYTES, s = group & 15u;
  const uint low = load8(block + 96u + (s & 7u)) >> (4u * (s >> 3)) & 15u;
  const uint high = load8(block + 104u + (s & 3u)) >> (2u * (s >> 2)) & 3u;
  Codes c;
  c.scale = half_to_float(load16(block + 108u)) * (float(low | high << 4) - 32.0);
  c.offset = 0.0;
  const uint codes = block + 32u + 32u * (s >> 3) + 16u * (s & 1u), shift = 2u * (s >> 1 & 3u);
  const uint masks = block + 16u * (s & 1u), bit = s >> 1;
  for (uint j = 0u; j < 4u; ++j) {
    const uint third = (load32(masks + 4u * j) >> bit & 0x01010101u) << 2;
    c.word[j] = minus4(load32(codes + 4u * j) >> shift & 0x03030303u | third, 0x04040404u);
  }
  return c;
}
#endif

#if defined(TYPE_Q4_K)
#define Q4_K_BLOCK 256
#define Q4_K_BYTES 144
#define HAS_SCALES6
const uint kBlockBytes = Q4_K_BYTES, kCodes = 16u;
#elif defined(TYPE_Q5_K)
#define Q5_K_BLOCK 256
#define Q5_K_BYTES 176
#define HAS_SCALES6
const uint kBlockBytes = Q5_K_BYTES, kCodes = 48u, kFifthBits = 16u;
#endif

#ifdef HAS_SCALES6
#define HAS_OFFSET
// Scale and minimum of sub-block `s` of 32, six bits each, from the 12 bytes at `at`, a multiple of 4.
uvec2 scales6(uint at, uint s) {
  const uint shift = 8u * (s & 3u), w = at >> 2;
  const uint a = weight_words[w] >> shift, b = weight_words[w + 1] >> shift;
  if (s < 4u) return uvec2(a & 63u, b & 63u);
  const uint c = weight_words[w + 2] >> shift;
  return uvec2(c & 15u | (a >> 6 & 3u) << 4, c >> 4 & 15u | (b >> 6 & 3u) << 4);
}
Codes load_codes(uint row_at, uint group) {
  const uint block = row_at + (group >> 4) * kBlockBytes, s = group >> 1 & 7u;
  const uvec2 packed = scales6(block + 4u, s);
  const uint d = weight_words[block >> 2];
  Codes c;
  c.scale = low_half(d) * float(packed.x);
  c.offset = -high_half(d) * float(packed.y);
  const uint codes = (block + kCodes + 32u * (s >> 1) + 16u * (group & 1u)) >> 2, shift = 4u * (s & 1u);
  for (uint j = 0u; j < 4u; ++j) c.word[j] = weight_words[codes + j] >> shift & 0x0f0f0f0fu;
#ifdef TYPE_Q5_K
  const uint fifths = (block + kFifthBits + 16u * (group & 1u)) >> 2;
  for (uint j = 0u; j < 4u; ++j) c.word[j] |= bit_of_bytes(weight_words[fifths + j], s);
#endif
  return c;
}
#endif

#ifdef TYPE_Q6_K
#define Q6_K_BLOCK 256
#define Q6_K_BYTES 210
Codes load_codes(uint row_at, uint group) {
  const uint block = row_at + (group >> 4) * Q6_K_BYTES, s = group & 15u, half_block = s >> 3;
  Codes c;
  c.scale = half_to_float(load16(block + 208u)) * float(int(load8(block + 192u + s) << 24) >> 24);
  c.offset = 0.0;
  const uint low = block + 64u * half_block + 16u * (s & 3u), shift = 4u * (s >> 2 & 1u);
  const uint high = block + 128u + 32u * half_block + 16u * (s & 1u), high_shift = 2u * (s >> 1 & 3u);
  for (uint j = 0u; j < 4u; ++j) {
    const uint top = (load32(high + 4u * j) >> high_shift & 0x03030303u) << 4;
    c.word[j] = minus4(load32(low + 4u * j) >> shift & 0x0f0f0f0fu | top, 0x20202020u);
  }
  return c;
}
#endif

#ifdef TYPE_IQ4_XS
#define IQ4_XS_BLOCK 256
#define IQ4_XS_BYTES 136
Codes load_codes(uint row_at, uint group) {
  const uint block = row_at + (group >> 4) * IQ4_XS_BYTES, s = group >> 1 & 7u;
  const uint head = weight_words[block >> 2];  // d, then the two high bits of each sub-block's scale
  const uint low = weight_words[(block >> 2) + 1] >> (4u * s) & 15u, high = head >> (16u + 2u * s) & 3u;
  Codes c;
  c.scale = low_half(head) * (float(low | high << 4) - 32.0);
  c.offset = 0.0;
  const uint codes = (block + 8u + 16u * s) >> 2, shift = 4u * (group & 1u);
  for (uint j = 0u; j < 4u; ++j) c.word[j] = values4(weight_words[codes + j] >> shift & 0x0f0f0f0fu);
  return c;
}
#endif

#ifdef TYPE_Q8_K
#define Q8_K_BLOCK 256
#define Q8_K_BYTES 292
Codes load_codes(uint row_at, uint group) {
  const uint block = row_at + (group >> 4) * Q8_K_BYTES;
  Codes c;
  c.scale = uintBitsToFloat(weight_words[block >> 2]);
  c.offset = 0.0;
  for (uint j = 0u; j < 4u; ++j) c.word[j] = weight_words[(block + 4u + 16u * (group & 15u)) / 4u + j];
  return c;
}
#endif

#include "weights_codebook.glsl"

// Types with an offset have unsigned codes, the others signed codes.
#ifndef HAS_TAIL
Group load_group(uint row_at, uint group, uint row_values) {
  const Codes c = load_codes(row_at, group);
  Group g;
  g.scale = c.scale;
  g.offset = c.offset;
  for (uint j = 0u; j < 4u; ++j) {
#if defined(HAS_OFFSET)
    g.code[j] = bytes4(c.word[j]);
#elif defined(TYPE_MXFP4)
    g.code[j] = signed4(c.word[j]) * c.unit;
#else
    g.code[j] = signed4(c.word[j]);
#endif
  }
  return g;
}
#endif
