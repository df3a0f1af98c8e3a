// Unpacks weights in the file's own formats (ggml-like/quant/blocks.h), 16 values at a time:
//   x[i] = scale * (code[i] - kBias) + offset
// The codes are bytes, four in a word. Every format is a struct with
//   Block, kValues          its block and the number of values in it
//   kSigned, kBias, kOffset what the codes are, and whether there is an offset
//   kRuns, kRunGroups, kRunStride, first_group(unit)
//                           the groups that a matmul takes together
//   load(b, g)              group g of 16 values of block b
// Weights begin at addresses that are multiples of 16, so a field can be read in words of any size that divides its
// offset and the size of the block.
#pragma once

#include "backends/cuda/kernel.h"
#include "ggml-like/quant/blocks.h"

namespace infer::cuda {

struct Codes {
  uint32_t word[4];
  float scale, offset;
};

// ---- What the codes of a format are ----

template <int kZero>
struct Unsigned {
  static constexpr bool kSigned = false, kOffset = false;
  static constexpr int kBias = kZero;
};
struct WithOffset {
  static constexpr bool kSigned = false, kOffset = true;
  static constexpr int kBias = 0;
};
struct Signed {
  static constexpr bool kSigned = true, kOffset = false;
  static constexpr int kBias = 0;
};

// ---- Units: groups that are packed into the same bytes, which the compiler then loads once ----
//
// A unit is a number of runs, kRunStride groups apart; a run is one or two groups with one scale within 32 values.

struct Whole32 {  // a scale for 32 values
  static constexpr int kRuns = 1, kRunGroups = 2, kRunStride = 2;
  __device__ static int first_group(int unit) { return 2 * unit; }
};
struct Halves32 {  // a scale for 16 values
  static constexpr int kRuns = 2, kRunGroups = 1, kRunStride = 1;
  __device__ static int first_group(int unit) { return 2 * unit; }
};
struct Rows64 {  // 32 values in the low nibbles of bytes, the next 32 in the high ones
  static constexpr int kRuns = 2, kRunGroups = 2, kRunStride = 2;
  __device__ static int first_group(int unit) { return 4 * unit; }
};
struct Columns16 {  // of 128 values, the groups 32 values apart
  static constexpr int kRuns = 4, kRunGroups = 1, kRunStride = 2;
  __device__ static int first_group(int unit) { return 8 * (unit >> 1) + (unit & 1); }
};

// ---- Loading ----

// A word at an address that is a multiple of 4, or of 2.
__device__ inline uint32_t load4(const void* p) { return *static_cast<const uint32_t*>(p); }
__device__ inline uint32_t load2x2(const void* p) {
  const auto* halves = static_cast<const uint16_t*>(p);
  return halves[0] | static_cast<uint32_t>(halves[1]) << 16;
}
// 16 bytes at an address that is a multiple of 16, of 4, of 2 (HalfAligned), or any. For the last two, whole words are
// loaded, which may begin up to three bytes before the address: REQUIRES that these bytes are part of the tensor, as
// they are unless it begins there.
struct Words4 {
  uint32_t word[4];
};
__device__ inline Words4 load16(const void* p) {
  const uint4 v = load_vector(p);
  return {{v.x, v.y, v.z, v.w}};
}
__device__ inline Words4 load4x4(const void* p) {
  const auto* words = static_cast<const uint32_t*>(p);
  return {{words[0], words[1], words[2], words[3]}};
}
__device__ inline Words4 load1x16(const void* p) {
  const auto* bytes = static_cast<const uint8_t*>(p);
  const uint32_t skipped = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(p)) & 3u;
  const auto* words = reinterpret_cast<const uint32_t*>(bytes - skipped);
  const uint32_t last = (bytes[13] | bytes[14] << 8 | bytes[15] << 16) >> (8 * (3 - skipped) & 31);
  const uint32_t w[5] = {words[0], words[1], words[2], words[3], last}, selector = 0x3210u + 0x1111u * skipped;
  Words4 result;
  INFER_UNROLL
  for (int i = 0; i < 4; ++i) result.word[i] = __byte_perm(w[i], w[i + 1], selector);
  return result;
}

// Fields of a block that is only aligned to two bytes.
class HalfAligned {
 public:
  __device__ explicit HalfAligned(const void* p) : field_(static_cast<const uint8_t*>(p)) {
    odd_ = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(p)) & 2u;
  }
  // The 16 bytes at `offset`, a multiple of four.
  __device__ Words4 load(int offset) const {
    const auto* words = reinterpret_cast<const uint32_t*>(field_ - odd_ + offset);
    const uint32_t last = *reinterpret_cast<const uint16_t*>(field_ + offset + 14);
    const uint32_t w[5] = {words[0], words[1], words[2], words[3], last}, selector = odd_ ? 0x5432u : 0x3210u;
    Words4 result;
    INFER_UNROLL
    for (int i = 0; i < 4; ++i) result.word[i] = __byte_perm(w[i], w[i + 1], selector);
    return result;
  }

 private:
  const uint8_t* field_;
  uint32_t odd_;  // 2 if the words of the memory begin two bytes before those of the field, else 0
};

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
// The values of the low and of the high nibbles of four bytes. A byte of a permutation is selected by three bits; the
// fourth of each code then chooses between the two halves of the table.
struct LookedUp {
  uint32_t low, high;
  __device__ uint32_t half(int i) const { return i ? high : low; }
};
__device__ inline LookedUp look_up8(const NibbleTable& table, uint32_t codes) {
  uint32_t pairs[2];  // of two bytes: low, high, low, high
  INFER_UNROLL
  for (int i = 0; i < 2; ++i) {
    const uint32_t four = codes >> (16 * i) & 0xffffu, three_bits = four & 0x7777u;
    const uint32_t lower = __byte_perm(table.word[0], table.word[1], three_bits);
    const uint32_t upper = __byte_perm(table.word[2], table.word[3], three_bits);
    pairs[i] = __byte_perm(lower, upper, 0x3210u | (four & 0x8888u) >> 1);
  }
  return {__byte_perm(pairs[0], pairs[1], 0x6420u), __byte_perm(pairs[0], pairs[1], 0x7531u)};
}
// The tables of ggml-like/quant/tables.h, as words.
__device__ inline NibbleTable iq4_values() { return {{0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u}}; }
__device__ inline NibbleTable e2m1_values() { return {{0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu}}; }

// ---- Blocks of 32: codes 0..15 in the low nibbles, 16..31 in the high nibbles ----

__device__ inline uint32_t nibbles(uint32_t word, int high) { return word >> (4 * high) & 0x0f0f0f0fu; }

struct Q4_0 : Unsigned<8>, Whole32 {
  using Block = BlockQ4_0;
  static constexpr int kValues = 32;
  __device__ static Codes load(const Block& b, int g) {
    Codes c = {{}, half_to_float(b.d), 0};
    const Words4 w = HalfAligned(b.qs).load(0);
    INFER_UNROLL
    for (int j = 0; j < 4; ++j) c.word[j] = nibbles(w.word[j], g);
    return c;
  }
};
struct Q4_1 : WithOffset, Whole32 {
  using Block = BlockQ4_1;
  static constexpr int kValues = 32;
  __device__ static Codes load(const Block& b, int g) {
    Codes c = {{}, half_to_float(b.d), half_to_float(b.m)};
    INFER_UNROLL
    for (int j = 0; j < 4; ++j) c.word[j] = nibbles(load4(b.qs + 4 * j), g);
    return c;
  }
};
struct Q5_0 : Unsigned<16>, Whole32 {
  using Block = BlockQ5_0;
  static constexpr int kValues = 32;
  __device__ static Codes load(const Block& b, int g) {
    Codes c = {{}, half_to_float(b.d), 0};
    const uint32_t fifths = load2x2(b.qh) >> (16 * g);
    const Words4 w = HalfAligned(b.qs).load(0);
    INFER_UNROLL
    for (int j = 0; j < 4; ++j) c.word[j] = nibbles(w.word[j], g) | spread4(fifths >> (4 * j) & 15u);
    return c;
  }
};
struct Q5_1 : WithOffset, Whole32 {
  using Block = BlockQ5_1;
  static constexpr int kValues = 32;
  __device__ static Codes load(const Block& b, int g) {
    Codes c = {{}, half_to_float(b.d), half_to_float(b.m)};
    const uint32_t fifths = load4(b.qh) >> (16 * g);
    INFER_UNROLL
    for (int j = 0; j < 4; ++j) c.word[j] = nibbles(load4(b.qs + 4 * j), g) | spread4(fifths >> (4 * j) & 15u);
    return c;
  }
};
struct Q8_0 : Signed, Whole32 {
  using Block = BlockQ8_0;
  static constexpr int kValues = 32;
  __device__ static Codes load(const Block& b, int g) {
    const Words4 w = HalfAligned(b.qs).load(16 * g);
    return {{w.word[0], w.word[1], w.word[2], w.word[3]}, half_to_float(b.d), 0};
  }
};
struct IQ4_NL : Signed, Whole32 {
  using Block = BlockIQ4_NL;
  static constexpr int kValues = 32;
  __device__ static Codes load(const Block& b, int g) {
    Codes c = {{}, half_to_float(b.d), 0};
    const Words4 w = HalfAligned(b.qs).load(0);
    INFER_UNROLL
    for (int j = 0; j < 4; ++j) c.word[j] = look_up8(iq4_values(), w.word[j]).half(g);
    return c;
  }
};
struct MXFP4 : Signed, Whole32 {
  using Block = BlockMXFP4;
  static constexpr int kValues = 32;
  __device__ static Codes load(const Block& b, int g) {
    // 2^(e - 128), which is denormal for e of 0 and 1.
    const uint32_t e = b.e;
    Codes c = {{}, __uint_as_float(e < 2 ? 0x00200000u << e : (e - 1) << 23), 0};
    const Words4 w = load1x16(b.qs);
    INFER_UNROLL
    for (int j = 0; j < 4; ++j) c.word[j] = look_up8(e2m1_values(), w.word[j]).half(g);
    return c;
  }
};

// ---- Blocks of 64 and 128 ----

struct Q1_0 : Unsigned<1>, Whole32 {
  using Block = BlockQ1_0;
  static constexpr int kValues = kBlockQ1_0;
  __device__ static Codes load(const Block& b, int g) {
    Codes c = {{}, half_to_float(b.d), 0};
    const uint32_t bits = b.qs[2 * g] | b.qs[2 * g + 1] << 8;
    INFER_UNROLL
    for (int j = 0; j < 4; ++j) c.word[j] = spread4(bits >> (4 * j) & 15u) >> 3;  // 0 or 2
    return c;
  }
};
struct Q2_0 : Unsigned<1>, Whole32 {
  using Block = BlockQ2_0;
  static constexpr int kValues = kBlockQ2_0;
  __device__ static Codes load(const Block& b, int g) {
    Codes c = {{}, half_to_float(b.d), 0};
    INFER_UNROLL
    for (int j = 0; j < 4; ++j) c.word[j] = spread_pairs(b.qs[4 * g + j]);
    return c;
  }
};
struct NVFP4 : Signed, Halves32 {
  using Block = BlockNVFP4;
  static constexpr int kValues = kBlockNVFP4;
  __device__ static Codes load(const Block& b, int g) {
    // E4M3 in units of half of its smallest value; 0x7f is zero.
    const uint32_t bits = b.d[g], e = bits >> 3 & 15u, m = bits & 7u;
    const uint32_t units = bits == 0x7fu ? 0u : e == 0u ? m : (8u + m) << (e - 1u);
    Codes c = {{}, static_cast<float>(units) * 0x1p-10f, 0};
    INFER_UNROLL
    for (int j = 0; j < 2; ++j) {
      const uint32_t w = load4(b.qs + 8 * g + 4 * j);
      const LookedUp values = look_up8(e2m1_values(), w);
      c.word[j] = values.low;
      c.word[2 + j] = values.high;
    }
    return c;
  }
};

// ---- Super-blocks of 256 ----

struct Q2_K : WithOffset, Columns16 {
  using Block = BlockQ2_K;
  static constexpr int kValues = 256;
  __device__ static Codes load(const Block& b, int g) {
    const uint32_t packed = b.scales[g];
    Codes c = {{},
               half_to_float(b.d) * static_cast<float>(packed & 15u),
               -half_to_float(b.dmin) * static_cast<float>(packed >> 4)};
    const Words4 w = load4x4(b.qs + 32 * (g >> 3) + 16 * (g & 1));
    const int shift = 2 * (g >> 1 & 3);
    INFER_UNROLL
    for (int j = 0; j < 4; ++j) c.word[j] = w.word[j] >> shift & 0x03030303u;
    return c;
  }
};
struct Q3_K : Unsigned<4>, Columns16 {
  using Block = BlockQ3_K;
  static constexpr int kValues = 256;
  __device__ static Codes load(const Block& b, int g) {
    const uint32_t low = b.scales[g & 7] >> (4 * (g >> 3)) & 15u, high = b.scales[8 + (g & 3)] >> (2 * (g >> 2)) & 3u;
    Codes c = {{}, half_to_float(b.d) * static_cast<float>(static_cast<int>(low | high << 4) - 32), 0};
    const HalfAligned bytes(b.hmask);
    const Words4 masks = bytes.load(16 * (g & 1)), w = bytes.load(32 + 32 * (g >> 3) + 16 * (g & 1));
    const int k = g >> 1 & 3, shift = 2 * k;
    INFER_UNROLL
    for (int j = 0; j < 4; ++j) {
      const uint32_t bits = masks.word[j] >> (4 * (g >> 3)), third = k < 2 ? bits << (2 - k) : bits >> (k - 2);
      c.word[j] = (w.word[j] >> shift & 0x03030303u) | (third & 0x04040404u);
    }
    return c;
  }
};

// Scale and minimum of sub-block s of 32, six bits each, from the 12 bytes of Q4_K and Q5_K.
struct Scales6 {
  uint32_t scale, minimum;
};
__device__ inline Scales6 scales6(uint32_t a, uint32_t b, uint32_t c, int s) {
  const bool first = s < 4;
  const uint32_t scales = first ? a : (c & 0x0f0f0f0fu) | (a >> 2 & 0x30303030u);
  const uint32_t minima = first ? b : (c >> 4 & 0x0f0f0f0fu) | (b >> 2 & 0x30303030u);
  const int shift = 8 * (s & 3);
  return {scales >> shift & 63u, minima >> shift & 63u};
}
template <typename Block>
__device__ Codes load_k(const Block& b, int g) {
  const int s = g >> 1;
  const Words4 head = load16(&b);  // d, dmin, scales
  const Scales6 packed = scales6(head.word[1], head.word[2], head.word[3], s);
  Codes c = {{},
             half_to_float(static_cast<uint16_t>(head.word[0])) * static_cast<float>(packed.scale),
             -half_to_float(static_cast<uint16_t>(head.word[0] >> 16)) * static_cast<float>(packed.minimum)};
  const Words4 w = load16(b.qs + 32 * (s >> 1) + 16 * (g & 1));
  INFER_UNROLL
  for (int j = 0; j < 4; ++j) c.word[j] = nibbles(w.word[j], s & 1);
  return c;
}
struct Q4_K : WithOffset, Rows64 {
  using Block = BlockQ4_K;
  static constexpr int kValues = 256;
  __device__ static Codes load(const Block& b, int g) { return load_k(b, g); }
};
struct Q5_K : WithOffset, Rows64 {
  using Block = BlockQ5_K;
  static constexpr int kValues = 256;
  __device__ static Codes load(const Block& b, int g) {
    Codes c = load_k(b, g);
    const Words4 fifths = load16(b.qh + 16 * (g & 1));
    INFER_UNROLL
    for (int j = 0; j < 4; ++j) {
      c.word[j] |= fifths.word[j] >> (2 * (g >> 2)) << (g >> 1 & 1 ? 3 : 4) & 0x10101010u;
    }
    return c;
  }
};
struct Q6_K : Unsigned<32>, Columns16 {
  using Block = BlockQ6_K;
  static constexpr int kValues = 256;
  __device__ static Codes load(const Block& b, int g) {
    Codes c = {{}, half_to_float(b.d) * static_cast<float>(b.scales[g]), 0};
    const HalfAligned bytes(b.ql);
    const Words4 low = bytes.load(64 * (g >> 3) + 16 * (g & 3)), high = bytes.load(128 + 32 * (g >> 3) + 16 * (g & 1));
    const int shift = 2 * (g >> 1 & 3);
    INFER_UNROLL
    for (int j = 0; j < 4; ++j) {
      const uint32_t top = shift < 4 ? high.word[j] << (4 - shift) : high.word[j] >> (shift - 4);
      c.word[j] = nibbles(low.word[j], g >> 2 & 1) | (top & 0x30303030u);
    }
    return c;
  }
};
struct IQ4_XS : Signed, Whole32 {
  using Block = BlockIQ4_XS;
  static constexpr int kValues = 256;
  __device__ static Codes load(const Block& b, int g) {
    const int s = g >> 1;
    const uint32_t low = b.scales_l[s >> 1] >> (4 * (s & 1)) & 15u, high = b.scales_h >> (2 * s) & 3u;
    Codes c = {{}, half_to_float(b.d) * static_cast<float>(static_cast<int>(low | high << 4) - 32), 0};
    const Words4 w = load4x4(b.qs + 16 * s);
    INFER_UNROLL
    for (int j = 0; j < 4; ++j) c.word[j] = look_up8(iq4_values(), w.word[j]).half(g & 1);
    return c;
  }
};
struct TQ1_0 : Unsigned<1>, Whole32 {
  using Block = BlockTQ1_0;
  static constexpr int kValues = 256;
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
    INFER_UNROLL
    for (int j = 0; j < 4; ++j) {
      const uint32_t w = load2x2(bytes + (g < 15 ? 4 * j : 0));
      const uint32_t power = power_of_3(g < 10 ? g >> 1 : g < 15 ? g - 10 : j);
      c.word[j] = digits(w & 0x00ff00ffu, power) | digits(w >> 8 & 0x00ff00ffu, power) << 8;
    }
    return c;
  }
};
struct TQ2_0 : Unsigned<1>, Whole32 {
  using Block = BlockTQ2_0;
  static constexpr int kValues = 256;
  __device__ static Codes load(const Block& b, int g) {
    Codes c = {{}, half_to_float(b.d), 0};
    const Words4 w = HalfAligned(b.qs).load(32 * (g >> 3) + 16 * (g & 1));
    const int shift = 2 * (g >> 1 & 3);
    INFER_UNROLL
    for (int j = 0; j < 4; ++j) c.word[j] = w.word[j] >> shift & 0x03030303u;
    return c;
  }
};
struct Q8_K : Signed, Halves32 {
  using Block = BlockQ8_K;
  static constexpr int kValues = 256;
  __device__ static Codes load(const Block& b, int g) {
    const Words4 w = load4x4(b.qs + 16 * g);
    return {{w.word[0], w.word[1], w.word[2], w.word[3]}, b.d, 0};
  }
};

}  // namespace infer::cuda
