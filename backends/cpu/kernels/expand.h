// Formats with codebooks, and ternary ones: their blocks are expanded to bytes in L1, sixteen at a time, before they
// are multiplied (gemm_expanded.h). All of them become the same form, so only this step is compiled once per format.
// Layouts are those of ggml-like/quant/blocks.h. Included inside an anonymous namespace after formats.h.
//
// A format has
//   kBytes, kUnit: the scale of a block is d * kUnit
//   block(p, codes, scales): the 256 codes (at most 64 in magnitude) and the scales of each 16 of the block at p;
//   returns
//     the bits of d

struct ExpandedBlocks {
  alignas(64) int8_t codes[16][256];
  alignas(64) uint8_t scales[16][16];
  alignas(64) uint16_t d[16];
};

INFER_SIMD uint64_t load_u64(const uint8_t* p) {
  uint64_t x;
  __builtin_memcpy(&x, p, 8);
  return x;
}
INFER_SIMD uint32_t load_u32(const uint8_t* p) {
  uint32_t x;
  __builtin_memcpy(&x, p, 4);
  return x;
}
INFER_SIMD uint16_t load_u16(const uint8_t* p) {
  uint16_t x;
  __builtin_memcpy(&x, p, 2);
  return x;
}

// The functions below work on small fields of a word, all at once.

// Four bytes as uint16.
INFER_SIMD uint64_t widen_bytes(uint32_t x) {
  const uint64_t pairs = (x | static_cast<uint64_t>(x) << 16) & 0x0000ffff0000ffffu;
  return (pairs | pairs << 8) & 0x00ff00ff00ff00ffu;
}
// Eight nibbles as bytes.
INFER_SIMD uint64_t widen_nibbles(uint32_t x) {
  const uint64_t bytes = widen_bytes(x);
  return (bytes | bytes << 4) & 0x0f0f0f0f0f0f0f0fu;
}
// The low bytes of eight uint16, of which the upper bytes are zero.
INFER_SIMD uint64_t narrow_bytes(uint64_t low, uint64_t high) {
  const auto narrow = [](uint64_t x) INFER_LAMBDA {
    const uint64_t pairs = (x | x >> 8) & 0x0000ffff0000ffffu;
    return (pairs | pairs >> 16) & 0xffffffffu;
  };
  return narrow(low) | narrow(high) << 32;
}
// Eight bytes of seven bits each, with the eighth that makes the number of bits even.
INFER_SIMD uint64_t with_even_bits(uint64_t x) {
  uint64_t parity = (x ^ x >> 4) & 0x0f0f0f0f0f0f0f0fu;
  parity ^= parity >> 2;
  parity = (parity ^ parity >> 1) & 0x0101010101010101u;
  return x | parity << 7;
}
// Of two 32-bit words the low 28 bits, four times seven, as signs of eight values each.
INFER_SIMD uint64_t even_signs_of(uint64_t words) {
  const uint64_t pairs = (words & 0x00003fff00003fffu) | (words & 0x0fffc0000fffc000u) << 2;
  return with_even_bits((pairs & 0x007f007f007f007fu) | (pairs & 0x3f803f803f803f80u) << 1);
}
// 2 s + 1 of eight bytes, twice each.
INFER_SIMD void store_pairs_of_odd(uint64_t s, uint8_t* scales) {
  const uint64_t odd = s << 1 | 0x0101010101010101u;
  const uint64_t low = widen_bytes(static_cast<uint32_t>(odd)) * 0x101;
  const uint64_t high = widen_bytes(static_cast<uint32_t>(odd >> 32)) * 0x101;
  __builtin_memcpy(scales, &low, 8), __builtin_memcpy(scales + 8, &high, 8);
}
// 2 s + 1 of sixteen nibbles.
INFER_SIMD void store_odd_nibbles(const uint8_t* p, uint8_t* scales) {
  for (int h = 0; h < 2; ++h) {
    const uint64_t odd = widen_nibbles(load_u32(p + 4 * h)) << 1 | 0x0101010101010101u;
    __builtin_memcpy(scales + 8 * h, &odd, 8);
  }
}
// The top four bits of eight 32-bit words as bytes; `words` has two each.
INFER_SIMD uint64_t top_nibbles(const uint64_t* words) {
  uint64_t nibbles = 0;
  for (int h = 0; h < 4; ++h) nibbles |= ((words[h] >> 28 & 15) | (words[h] >> 60) << 8) << (16 * h);
  return nibbles;
}

struct ExpandIQ2XXS {
  static constexpr int kBytes = 66;
  static constexpr float kUnit = 0.125f;
  static INFER_SIMD uint16_t block(const uint8_t* p, int8_t* codes, uint8_t* scales) {
    uint64_t rest[4];
#pragma GCC unroll 4
    for (int h = 0; h < 4; ++h) {
      const uint64_t a = load_u64(p + 2 + 16 * h), b = load_u64(p + 10 + 16 * h);
      rest[h] = a >> 32 | (b & 0xffffffff00000000u);
      const I magnitudes =
          i_entries8(kIQ2XXSGrid.data(), widen_bytes(static_cast<uint32_t>(a)), widen_bytes(static_cast<uint32_t>(b)));
      i_store(codes + 64 * h, i_negate8(magnitudes, even_signs_of(rest[h])));
    }
    store_pairs_of_odd(top_nibbles(rest), scales);
    return load_u16(p);
  }
};

struct ExpandIQ2XS {
  static constexpr int kBytes = 74;
  static constexpr float kUnit = 0.125f;
  static INFER_SIMD uint16_t block(const uint8_t* p, int8_t* codes, uint8_t* scales) {
    constexpr uint64_t kIndex = 0x01ff01ff01ff01ffu, kSigns = 0x007f007f007f007fu;
#pragma GCC unroll 4
    for (int h = 0; h < 4; ++h) {
      const uint64_t a = load_u64(p + 2 + 16 * h), b = load_u64(p + 10 + 16 * h);
      const I magnitudes = i_entries8(kIQ2XSGrid.data(), a & kIndex, b & kIndex);
      const uint64_t signs = with_even_bits(narrow_bytes(a >> 9 & kSigns, b >> 9 & kSigns));
      i_store(codes + 64 * h, i_negate8(magnitudes, signs));
    }
    store_odd_nibbles(p + 66, scales);
    return load_u16(p);
  }
};

struct ExpandIQ2S {
  static constexpr int kBytes = 82;
  static constexpr float kUnit = 0.125f;
  // Bits 2k and 2k + 1 of a byte as bits 8 and 9 of the k-th uint16.
  static INFER_SIMD uint64_t high(uint8_t bits) {
    return bits * (1ull << 8 | 1ull << 22 | 1ull << 36 | 1ull << 50) & 0x0300030003000300u;
  }
  static INFER_SIMD uint16_t block(const uint8_t* p, int8_t* codes, uint8_t* scales) {
#pragma GCC unroll 4
    for (int h = 0; h < 4; ++h) {
      const I magnitudes = i_entries8(kIQ2SGrid.data(), widen_bytes(load_u32(p + 2 + 8 * h)) | high(p[66 + 2 * h]),
                                      widen_bytes(load_u32(p + 6 + 8 * h)) | high(p[67 + 2 * h]));
      i_store(codes + 64 * h, i_negate8(magnitudes, load_u64(p + 34 + 8 * h)));
    }
    store_odd_nibbles(p + 74, scales);
    return load_u16(p);
  }
};

struct ExpandIQ3XXS {
  static constexpr int kBytes = 98;
  static constexpr float kUnit = 0.25f;
  static INFER_SIMD uint16_t block(const uint8_t* p, int8_t* codes, uint8_t* scales) {
    uint64_t rest[4];
#pragma GCC unroll 4
    for (int h = 0; h < 4; ++h) {
      rest[h] = load_u64(p + 66 + 8 * h);
      const I magnitudes = i_entries16(kIQ3XXSGrid.data(), p + 2 + 16 * h, 0);
      i_store(codes + 64 * h, i_negate8(magnitudes, even_signs_of(rest[h])));
    }
    store_pairs_of_odd(top_nibbles(rest), scales);
    return load_u16(p);
  }
};

struct ExpandIQ3S {
  static constexpr int kBytes = 110;
  static constexpr float kUnit = 1;
  static INFER_SIMD uint16_t block(const uint8_t* p, int8_t* codes, uint8_t* scales) {
#pragma GCC unroll 4
    for (int h = 0; h < 4; ++h) {
      const I magnitudes = i_entries16(kIQ3SGrid.data(), p + 2 + 16 * h, load_u16(p + 66 + 2 * h));
      i_store(codes + 64 * h, i_negate8(magnitudes, load_u64(p + 74 + 8 * h)));
    }
    store_pairs_of_odd(widen_nibbles(load_u32(p + 106)), scales);
    return load_u16(p);
  }
};

// The codes 8 t - 1 where a bit of `minus` is set, else 8 t + 1, of the bytes 8 (t + 1) of entries.
INFER_SIMD I shift_codes(I entries, uint64_t minus) {
  const I flags = i_byte_flags(minus);
  return i_sub8(entries, i_sub8(i_sub8(byte_mask(7), flags), flags));
}

struct ExpandIQ1S {
  static constexpr int kBytes = 50;
  static constexpr float kUnit = 0.125f;
  // Bits 3k .. 3k + 2 as bits 8 .. 10 of the k-th uint16.
  static INFER_SIMD uint64_t high(uint32_t bits) {
    return (bits & 0xfff) * (1ull << 8 | 1ull << 21 | 1ull << 34 | 1ull << 47) & 0x0700070007000700u;
  }
  static INFER_SIMD uint16_t block(const uint8_t* p, int8_t* codes, uint8_t* scales) {
    uint64_t s = 0;
#pragma GCC unroll 4
    for (int h = 0; h < 4; ++h) {
      const uint32_t a = load_u16(p + 34 + 4 * h), b = load_u16(p + 36 + 4 * h);
      const I entries = i_entries8(kIQ1Grid.data(), widen_bytes(load_u32(p + 2 + 8 * h)) | high(a),
                                   widen_bytes(load_u32(p + 6 + 8 * h)) | high(b));
      const uint64_t minus = (a >> 15) * 0xffffffffull | (b >> 15) * 0xffffffff00000000ull;
      i_store(codes + 64 * h, shift_codes(entries, minus));
      s |= static_cast<uint64_t>((a >> 12 & 7) | (b >> 12 & 7) << 8) << (16 * h);
    }
    store_pairs_of_odd(s, scales);
    return load_u16(p);
  }
};

struct ExpandIQ1M {
  static constexpr int kBytes = 56;
  static constexpr float kUnit = 0.125f;
  // The low three bits of four nibbles as bits 8 .. 10 of uint16. No sum of the product reaches into those bits.
  static INFER_SIMD uint64_t high(uint32_t nibbles) {
    return (nibbles & 0x7777) * (1ull << 8 | 1ull << 20 | 1ull << 32 | 1ull << 44) & 0x0700070007000700u;
  }
  static INFER_SIMD uint16_t block(const uint8_t* p, int8_t* codes, uint8_t* scales) {
#pragma GCC unroll 4
    for (int h = 0; h < 4; ++h) {
      const uint32_t nibbles = load_u32(p + 32 + 4 * h);
      const I entries = i_entries8(kIQ1Grid.data(), widen_bytes(load_u32(p + 8 * h)) | high(nibbles),
                                   widen_bytes(load_u32(p + 4 + 8 * h)) | high(nibbles >> 16));
      i_store(codes + 64 * h, shift_codes(entries, widen_nibbles(nibbles >> 3 & 0x11111111) * 255));
      const uint32_t w = load_u16(p + 48 + 2 * h);
      const uint32_t odd = 2 * ((w & 7) | (w & 0x38) << 5 | (w & 0x1c0) << 10 | (w & 0xe00) << 15) + 0x01010101;
      __builtin_memcpy(scales + 4 * h, &odd, 4);
    }
    const uint64_t w = load_u64(p + 48);
    return static_cast<uint16_t>((w >> 12 & 15) | (w >> 24 & 0xf0) | (w >> 36 & 0xf00) | (w >> 48 & 0xf000));
  }
};

struct ExpandTQ1 {
  static constexpr int kBytes = 54;
  static constexpr float kUnit = 1;
  static INFER_SIMD uint16_t block(const uint8_t* p, int8_t* codes, uint8_t* scales) {
    alignas(64) uint8_t bytes[64] = {};
    __builtin_memcpy(bytes, p, 52);
    I q = i_load(bytes);
#pragma GCC unroll 5
    for (int n = 0; n < 5; ++n) {
      // The digit is 3 q / 256, that is how many of 85 and 170 are below q. Flags are -1.
      const I shifted = i_xor(q, byte_mask(128));
      const I digits = i_sub8(i_zero(), i_gt8(shifted, byte_mask((85 - 128) & 255)));
      i_store(bytes, i_sub8(i_sub8(digits, i_gt8(shifted, byte_mask(170 - 128))), byte_mask(1)));
      __builtin_memcpy(codes + 32 * n, bytes, 32);
      __builtin_memcpy(codes + 160 + 16 * n, bytes + 32, 16);
      if (n < 4) __builtin_memcpy(codes + 240 + 4 * n, bytes + 48, 4);
      q = i_add8(i_add8(q, q), q);
    }
    __builtin_memset(scales, 1, 16);
    return load_u16(p + 52);
  }
};

struct ExpandTQ2 {
  static constexpr int kBytes = 66;
  static constexpr float kUnit = 1;
  template <int N>
  static INFER_SIMD void quarter(I q, int8_t* codes) {
    alignas(64) uint8_t bytes[64];
    i_store(bytes, i_sub8(shift_mask<2 * N>(q, byte_mask(3)), byte_mask(1)));
    __builtin_memcpy(codes + 32 * N, bytes, 32);
    __builtin_memcpy(codes + 128 + 32 * N, bytes + 32, 32);
  }
  static INFER_SIMD uint16_t block(const uint8_t* p, int8_t* codes, uint8_t* scales) {
    const I q = i_load(p);
    quarter<0>(q, codes), quarter<1>(q, codes), quarter<2>(q, codes), quarter<3>(q, codes);
    __builtin_memset(scales, 1, 16);
    return load_u16(p + 64);
  }
};

// Expands `count` blocks, `stride` bytes apart.
using ExpandKernel = void (*)(const uint8_t* p, size_t stride, int count, ExpandedBlocks& out);
template <typename W>
INFER_OUTLINE void expand_blocks(const uint8_t* p, size_t stride, int count, ExpandedBlocks& out) {
  for (int i = 0; i < count; ++i, p += stride) out.d[i] = W::block(p, out.codes[i], out.scales[i]);
}
