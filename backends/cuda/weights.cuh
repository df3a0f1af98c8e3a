// Unpacks weights in the file's own formats (ggml-like/quant/blocks.h), 16 values at a time:
//   x[i] = scale * code[i] + offset
// The codes are bytes, four in a word. Every format is a struct with
//   Block, kValues  its block and the number of values in it
//   kOffset         whether there is an offset; then the codes are unsigned, else signed
//   load(b, g)      group g of 16 values of block b
// Weights begin at addresses that are multiples of 16, so blocks of a multiple of four bytes can be read in words.
#pragma once

#include "backends/cuda/kernel.h"
#include "ggml-like/quant/blocks.h"

namespace infer::cuda {

struct Codes {
  uint32_t word[4];
  float scale, offset;
};

// ---- Loading ----

// A word at an address that is a multiple of 4, of 2, or any.
__device__ inline uint32_t load4(const void* p) { return *static_cast<const uint32_t*>(p); }
__device__ inline uint32_t load2x2(const void* p) {
  const auto* halves = static_cast<const uint16_t*>(p);
  return halves[0] | static_cast<uint32_t>(halves[1]) << 16;
}
__device__ inline uint32_t load1x4(const void* p) {
  const auto* bytes = static_cast<const uint8_t*>(p);
  return bytes[0] | bytes[1] << 8 | bytes[2] << 16 | static_cast<uint32_t>(bytes[3]) << 24;
}

// Subtracts the four bytes of `less` from four bytes below 128, as signed bytes; bit 7 keeps borrows from crossing
// bytes.
__device__ inline uint32_t minus4(uint32_t w, uint32_t less) { return ((w | 0x80808080u) - less) ^ 0x80808080u; }
// Four consecutive bits of a word, each at bit 4 of a byte.
__device__ inline uint32_t spread4(uint32_t bits) {
  return (bits & 1u) << 4 | (bits & 2u) << 11 | (bits & 4u) << 18 | (bits & 8u) << 25;
}
// Four 2-bit fields, one to each byte.
__device__ inline uint32_t spread_pairs(uint32_t bits) {
  return (bits | bits << 6 | bits << 12 | bits << 18) & 0x03030303u;
}
// Four 3-bit fields, one to each byte.
__device__ inline uint32_t spread_triples(uint32_t bits) {
  return (bits & 7u) | (bits & 0x38u) << 5 | (bits & 0x1c0u) << 10 | (bits & 0xe00u) << 15;
}

// Values of 4-bit codes, four to a word. The upper eight of a table are selected by bit 3 of the code.
struct NibbleTable {
  uint32_t word[4];
};
__device__ inline uint32_t look_up4(const NibbleTable& table, uint32_t codes) {  // codes: four bytes 0..15
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t code = codes >> (8 * i) & 15u;
    result |= (table.word[code >> 2] >> (8 * (code & 3u)) & 255u) << (8 * i);
  }
  return result;
}
// The tables of ggml-like/quant/tables.h, as words.
__device__ inline NibbleTable iq4_values() { return {{0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u}}; }
__device__ inline NibbleTable e2m1_values() { return {{0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu}}; }

// ---- Blocks of 32: codes 0..15 in the low nibbles, 16..31 in the high nibbles ----

__device__ inline uint32_t nibbles(uint32_t word, int high) { return word >> (4 * high) & 0x0f0f0f0fu; }

struct Q4_0 {
  using Block = BlockQ4_0;
  static constexpr int kValues = 32;
  static constexpr bool kOffset = false;
  __device__ static Codes load(const Block& b, int g) {
    Codes c = {{}, half_to_float(b.d), 0};
    for (int j = 0; j < 4; ++j) c.word[j] = minus4(nibbles(load2x2(b.qs + 4 * j), g), 0x08080808u);
    return c;
  }
};
struct Q4_1 {
  using Block = BlockQ4_1;
  static constexpr int kValues = 32;
  static constexpr bool kOffset = true;
  __device__ static Codes load(const Block& b, int g) {
    Codes c = {{}, half_to_float(b.d), half_to_float(b.m)};
    for (int j = 0; j < 4; ++j) c.word[j] = nibbles(load4(b.qs + 4 * j), g);
    return c;
  }
};
struct Q5_0 {
  using Block = BlockQ5_0;
  static constexpr int kValues = 32;
  static constexpr bool kOffset = false;
  __device__ static Codes load(const Block& b, int g) {
    Codes c = {{}, half_to_float(b.d), 0};
    const uint32_t fifths = load2x2(b.qh) >> (16 * g);
    for (int j = 0; j < 4; ++j) {
      c.word[j] = minus4(nibbles(load2x2(b.qs + 4 * j), g) | spread4(fifths >> (4 * j) & 15u), 0x10101010u);
    }
    return c;
  }
};
struct Q5_1 {
  using Block = BlockQ5_1;
  static constexpr int kValues = 32;
  static constexpr bool kOffset = true;
  __device__ static Codes load(const Block& b, int g) {
    Codes c = {{}, half_to_float(b.d), half_to_float(b.m)};
    const uint32_t fifths = load4(b.qh) >> (16 * g);
    for (int j = 0; j < 4; ++j) c.word[j] = nibbles(load4(b.qs + 4 * j), g) | spread4(fifths >> (4 * j) & 15u);
    return c;
  }
};
struct Q8_0 {
  using Block = BlockQ8_0;
  static constexpr int kValues = 32;
  static constexpr bool kOffset = false;
  __device__ static Codes load(const Block& b, int g) {
    Codes c = {{}, half_to_float(b.d), 0};
    for (int j = 0; j < 4; ++j) c.word[j] = load2x2(b.qs + 16 * g + 4 * j);
    return c;
  }
};
struct IQ4_NL {
  using Block = BlockIQ4_NL;
  static constexpr int kValues = 32;
  static constexpr bool kOffset = false;
  __device__ static Codes load(const Block& b, int g) {
    Codes c = {{}, half_to_float(b.d), 0};
    for (int j = 0; j < 4; ++j) c.word[j] = look_up4(iq4_values(), nibbles(load2x2(b.qs + 4 * j), g));
    return c;
  }
};
struct MXFP4 {
  using Block = BlockMXFP4;
  static constexpr int kValues = 32;
  static constexpr bool kOffset = false;
  __device__ static Codes load(const Block& b, int g) {
    // 2^(e - 128), which is denormal for e of 0 and 1.
    const uint32_t e = b.e;
    Codes c = {{}, __uint_as_float(e < 2 ? 0x00200000u << e : (e - 1) << 23), 0};
    for (int j = 0; j < 4; ++j) c.word[j] = look_up4(e2m1_values(), nibbles(load1x4(b.qs + 4 * j), g));
    return c;
  }
};

// ---- Blocks of 64 and 128 ----

struct Q1_0 {
  using Block = BlockQ1_0;
  static constexpr int kValues = kBlockQ1_0;
  static constexpr bool kOffset = false;
  __device__ static Codes load(const Block& b, int g) {
    Codes c = {{}, half_to_float(b.d), 0};
    const uint32_t bits = b.qs[2 * g] | b.qs[2 * g + 1] << 8;
    for (int j = 0; j < 4; ++j) c.word[j] = minus4(spread4(bits >> (4 * j) & 15u) >> 3, 0x01010101u);
    return c;
  }
};
struct Q2_0 {
  using Block = BlockQ2_0;
  static constexpr int kValues = kBlockQ2_0;
  static constexpr bool kOffset = false;
  __device__ static Codes load(const Block& b, int g) {
    Codes c = {{}, half_to_float(b.d), 0};
    for (int j = 0; j < 4; ++j) c.word[j] = minus4(spread_pairs(b.qs[4 * g + j]), 0x01010101u);
    return c;
  }
};
struct NVFP4 {
  using Block = BlockNVFP4;
  static constexpr int kValues = kBlockNVFP4;
  static constexpr bool kOffset = false;
  __device__ static Codes load(const Block& b, int g) {
    // E4M3 in units of half of its smallest value; 0x7f is zero.
    const uint32_t bits = b.d[g], e = bits >> 3 & 15u, m = bits & 7u;
    const uint32_t units = bits == 0x7fu ? 0u : e == 0u ? m : (8u + m) << (e - 1u);
    Codes c = {{}, static_cast<float>(units) * 0x1p-10f, 0};
    for (int j = 0; j < 2; ++j) {
      const uint32_t w = load4(b.qs + 8 * g + 4 * j);
      c.word[j] = look_up4(e2m1_values(), nibbles(w, 0));
      c.word[2 + j] = look_up4(e2m1_values(), nibbles(w, 1));
    }
    return c;
  }
};

// ---- Super-blocks of 256 ----

struct Q2_K {
  using Block = BlockQ2_K;
  static constexpr int kValues = 256;
  static constexpr bool kOffset = true;
  __device__ static Codes load(const Block& b, int g) {
    const uint32_t packed = b.scales[g];
    Codes c = {{},
               half_to_float(b.d) * static_cast<float>(packed & 15u),
               -half_to_float(b.dmin) * static_cast<float>(packed >> 4)};
    const uint8_t* const codes = b.qs + 32 * (g >> 3) + 16 * (g & 1);
    const int shift = 2 * (g >> 1 & 3);
    for (int j = 0; j < 4; ++j) c.word[j] = load4(codes + 4 * j) >> shift & 0x03030303u;
    return c;
  }
};
struct Q3_K {
  using Block = BlockQ3_K;
  static constexpr int kValues = 256;
  static constexpr bool kOffset = false;
  __device__ static Codes load(const Block& b, int g) {
    const uint32_t low = b.scales[g & 7] >> (4 * (g >> 3)) & 15u, high = b.scales[8 + (g & 3)] >> (2 * (g >> 2)) & 3u;
    Codes c = {{}, half_to_float(b.d) * static_cast<float>(static_cast<int>(low | high << 4) - 32), 0};
    const uint8_t *const codes = b.qs + 32 * (g >> 3) + 16 * (g & 1), *const masks = b.hmask + 16 * (g & 1);
    const int shift = 2 * (g >> 1 & 3), bit = g >> 1;
    for (int j = 0; j < 4; ++j) {
      const uint32_t third = (load2x2(masks + 4 * j) >> bit & 0x01010101u) << 2;
      c.word[j] = minus4((load2x2(codes + 4 * j) >> shift & 0x03030303u) | third, 0x04040404u);
    }
    return c;
  }
};

// Scale and minimum of sub-block s of 32, six bits each, from the 12 bytes of Q4_K and Q5_K.
struct Scales6 {
  uint32_t scale, minimum;
};
__device__ inline Scales6 scales6(const uint8_t* scales, int s) {
  const int shift = 8 * (s & 3);
  const uint32_t a = load4(scales) >> shift, b = load4(scales + 4) >> shift;
  if (s < 4) return {a & 63u, b & 63u};
  const uint32_t c = load4(scales + 8) >> shift;
  return {(c & 15u) | (a >> 6 & 3u) << 4, (c >> 4 & 15u) | (b >> 6 & 3u) << 4};
}
template <typename Block>
__device__ Codes load_k(const Block& b, int g) {
  const int s = g >> 1;
  const Scales6 packed = scales6(b.scales, s);
  Codes c = {{},
             half_to_float(b.d) * static_cast<float>(packed.scale),
             -half_to_float(b.dmin) * static_cast<float>(packed.minimum)};
  const uint8_t* const codes = b.qs + 32 * (s >> 1) + 16 * (g & 1);
  for (int j = 0; j < 4; ++j) c.word[j] = nibbles(load4(codes + 4 * j), s & 1);
  return c;
}
struct Q4_K {
  using Block = BlockQ4_K;
  static constexpr int kValues = 256;
  static constexpr bool kOffset = true;
  __device__ static Codes load(const Block& b, int g) { return load_k(b, g); }
};
struct Q5_K {
  using Block = BlockQ5_K;
  static constexpr int kValues = 256;
  static constexpr bool kOffset = true;
  __device__ static Codes load(const Block& b, int g) {
    Codes c = load_k(b, g);
    const uint8_t* const fifths = b.qh + 16 * (g & 1);
    for (int j = 0; j < 4; ++j) c.word[j] |= (load4(fifths + 4 * j) >> (g >> 1) & 0x01010101u) << 4;
    return c;
  }
};
struct Q6_K {
  using Block = BlockQ6_K;
  static constexpr int kValues = 256;
  static constexpr bool kOffset = false;
  __device__ static Codes load(const Block& b, int g) {
    Codes c = {{}, half_to_float(b.d) * static_cast<float>(b.scales[g]), 0};
    const uint8_t* const low = b.ql + 64 * (g >> 3) + 16 * (g & 3);
    const uint8_t* const high = b.qh + 32 * (g >> 3) + 16 * (g & 1);
    const int shift = 2 * (g >> 1 & 3);
    for (int j = 0; j < 4; ++j) {
      const uint32_t top = (load2x2(high + 4 * j) >> shift & 0x03030303u) << 4;
      c.word[j] = minus4(nibbles(load2x2(low + 4 * j), g >> 2 & 1) | top, 0x20202020u);
    }
    return c;
  }
};
struct IQ4_XS {
  using Block = BlockIQ4_XS;
  static constexpr int kValues = 256;
  static constexpr bool kOffset = false;
  __device__ static Codes load(const Block& b, int g) {
    const int s = g >> 1;
    const uint32_t low = b.scales_l[s >> 1] >> (4 * (s & 1)) & 15u, high = b.scales_h >> (2 * s) & 3u;
    Codes c = {{}, half_to_float(b.d) * static_cast<float>(static_cast<int>(low | high << 4) - 32), 0};
    for (int j = 0; j < 4; ++j) c.word[j] = look_up4(iq4_values(), nibbles(load4(b.qs + 16 * s + 4 * j), g & 1));
    return c;
  }
};
struct TQ1_0 {
  using Block = BlockTQ1_0;
  static constexpr int kValues = 256;
  static constexpr bool kOffset = false;
  // The next digit in base three of the fractions in two bytes, in the low and the high half of a word.
  __device__ static uint32_t digits(uint32_t halves, uint32_t power) {
    return ((halves * power & 0x00ff00ffu) * 3u) >> 8 & 0x00030003u;
  }
  __device__ static uint32_t power_of_3(int n) {
    uint32_t power = 1;
    for (int i = 0; i < n; ++i) power *= 3;
    return power;
  }
  __device__ static Codes load(const Block& b, int g) {
    // The bytes of qs and qh follow each other.
    const uint8_t* const bytes = g < 10 ? b.qs + 16 * (g & 1) : g < 15 ? b.qs + 32 : b.qh;
    Codes c = {{}, half_to_float(b.d), 0};
    for (int j = 0; j < 4; ++j) {
      const uint32_t w = load2x2(bytes + (g < 15 ? 4 * j : 0));
      const uint32_t power = power_of_3(g < 10 ? g >> 1 : g < 15 ? g - 10 : j);
      c.word[j] = minus4(digits(w & 0x00ff00ffu, power) | digits(w >> 8 & 0x00ff00ffu, power) << 8, 0x01010101u);
    }
    return c;
  }
};
struct TQ2_0 {
  using Block = BlockTQ2_0;
  static constexpr int kValues = 256;
  static constexpr bool kOffset = false;
  __device__ static Codes load(const Block& b, int g) {
    Codes c = {{}, half_to_float(b.d), 0};
    const uint8_t* const codes = b.qs + 32 * (g >> 3) + 16 * (g & 1);
    const int shift = 2 * (g >> 1 & 3);
    for (int j = 0; j < 4; ++j) c.word[j] = minus4(load2x2(codes + 4 * j) >> shift & 0x03030303u, 0x01010101u);
    return c;
  }
};
struct Q8_K {
  using Block = BlockQ8_K;
  static constexpr int kValues = 256;
  static constexpr bool kOffset = false;
  __device__ static Codes load(const Block& b, int g) {
    Codes c = {{}, b.d, 0};
    for (int j = 0; j < 4; ++j) c.word[j] = load4(b.qs + 16 * g + 4 * j);
    return c;
  }
};

}  // namespace infer::cuda
