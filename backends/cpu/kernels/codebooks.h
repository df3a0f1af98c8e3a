// Blocks of the formats with codebooks, sixteen groups of four values at a time. Layouts are those of
// ggml-like/quant/blocks.h. Included inside an anonymous namespace after formats.h.
//
// A block's values are in four vectors, ordered so that indices, signs and scales are used where the block stores them:
// lane l of every vector is in sub-block l / 2 of 32 values. Entries of 8 values: 64-bit lane i of vector J is the
// group of 8 number 4 i + J. Entries of 4 values: lane l of vector J is the group of 4 number 4 l + J.
//
// A format has
//   kBytes; kUnit: the scale of a block is d * kUnit; d(p): the bits of d
//   kEntry: 8 or 4 values; kOffset: subtracted from codes; kSigned: values may be negated
//   kScales: 1 or 2 scales per lane; with 2, the second is for vectors 2 and 3
//   kFits16: the sum of a lane's products that share a scale fits in 16 bits
//   Format(p): the block at p
//   codes<J>(): the codes of vector J; signs<J>(): which of them are negated
//   scale(): the scales of each lane as a 16-bit pair; the second is zero if there is only one

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
template <typename Body>
INFER_SIMD void each_of_four(const Body& body) {
  body.template operator()<0>(), body.template operator()<1>(), body.template operator()<2>(),
      body.template operator()<3>();
}

// A constant vector, built byte by byte or from 16-bit words.
struct alignas(64) Bytes64 {
  uint8_t v[64];
};
template <typename Byte>
constexpr Bytes64 bytes64(Byte byte) {
  Bytes64 b{};
  for (int i = 0; i < 64; ++i) b.v[i] = static_cast<uint8_t>(byte(i));
  return b;
}
template <typename Word>
constexpr Bytes64 words64(Word word) {
  return bytes64([=](int i) { return word(i / 2) >> (i % 2 * 8) & 255; });
}
constexpr int kNoByte = 128;  // an index for i_pick that gives zero

// Bit i is the parity of the seven bits from kFirst + i on, in 64-bit lanes.
template <int kFirst>
INFER_SIMD I parity7(I a) {
  const I three = i_xor3(i_shr64<kFirst>(a), i_shr64<kFirst + 1>(a), i_shr64<kFirst + 2>(a));
  return i_xor3(three, i_shr64<3>(three), i_shr64<kFirst + 6>(a));
}
// Signs stored as fields of seven bits, whose parity is the eighth sign: field f is bits 7 f .. 7 f + 6 of a 32-bit
// word. bit(f, m) is the place of sign m in a 64-bit lane that has this word at byte kWord and, in its other half, each
// parity at the first bit of its field.
template <int kWord>
struct FieldSigns {
  static constexpr int bit(int f, int m) { return m < 7 ? 8 * kWord + 7 * f + m : 32 - 8 * kWord + 7 * f; }
};
// 2 s + 1 of the nibbles of eight bytes, as 16-bit pairs: byte i in lanes 2 i and 2 i + 1, the low nibble first.
INFER_SIMD I odd_nibble_pairs(const uint8_t* p) {
  static constexpr Bytes64 kOrder = bytes64([](int i) { return i % 2 ? kNoByte : i / 8; });
  static constexpr Bytes64 kFactors = words64([](int i) { return i % 2 ? 2 : 32; });
  const I nibbles = i_shr<4>(i_mul16(i_pick(i_repeat8(p), i_load(&kOrder)), i_load(&kFactors)));
  return i_and_or(nibbles, i_set1(0x1e001e), i_set1(0x10001));
}

struct BookIQ2XXS {
  static constexpr int kBytes = 66, kEntry = 8, kOffset = 0, kScales = 1;
  static constexpr bool kSigned = true, kFits16 = false;
  static constexpr float kUnit = 0.125f;
  static uint16_t d(const uint8_t* p) { return load_u16(p); }

  // A 64-bit lane has four bytes of indices, and a word of signs with the scale on top.
  I words, bits;
  Fields fields;
  INFER_SIMD explicit BookIQ2XXS(const uint8_t* p)
      : words(i_load(p + 2)), bits(i_join32(parity7<32>(words), words)), fields(i_fields(words)) {}
  template <int J>
  INFER_SIMD I codes() const {
    return i_entries8<J, 8>(kIQ2XXSGrid.data(), fields);
  }
  template <int J>
  INFER_SIMD Signs signs() const {
    using At = FieldSigns<4>;
    static constexpr Bytes64 kOrder = bytes64([](int i) { return i / 8 % 2 * 8 + At::bit(J, i % 8) / 8; });
    static constexpr Bytes64 kBit = bytes64([](int i) { return 1 << At::bit(J, i % 8) % 8; });
    return i_signs(i_pick(bits, i_load(&kOrder)), i_load(&kBit));
  }
  INFER_SIMD I scale() const { return i_or(i_shr<27>(i_join32(i_shr64<32>(words), words)), i_set1(1)); }
};

struct BookIQ2XS {
  static constexpr int kBytes = 74, kEntry = 8, kOffset = 0, kScales = 2;
  static constexpr bool kSigned = true, kFits16 = false;
  static constexpr float kUnit = 0.125f;
  static uint16_t d(const uint8_t* p) { return load_u16(p); }

  const uint8_t* p;
  I bits;  // in a 16-bit word: signs in bits 9 .. 15, their parity in bit 0
  Fields fields;
  INFER_SIMD explicit BookIQ2XS(const uint8_t* at) : p(at) {
    const I words = i_load(p + 2);
    bits = i_join8(parity7<9>(words), words);
    fields = i_fields(i_and(words, i_set1(0x01ff01ff)));
  }
  template <int J>
  INFER_SIMD I codes() const {
    return i_entries8<J, 16>(kIQ2XSGrid.data(), fields);
  }
  template <int J>
  INFER_SIMD Signs signs() const {
    static constexpr Bytes64 kOrder = bytes64([](int i) { return i / 8 % 2 * 8 + 2 * J + (i % 8 < 7); });
    static constexpr Bytes64 kBit = bytes64([](int i) { return i % 8 < 7 ? 2 << i % 8 : 1; });
    return i_signs(i_pick(bits, i_load(&kOrder)), i_load(&kBit));
  }
  INFER_SIMD I scale() const { return odd_nibble_pairs(p + 66); }
};

struct BookIQ2S {
  static constexpr int kBytes = 82, kEntry = 8, kOffset = 0, kScales = 2;
  static constexpr bool kSigned = true, kFits16 = false;
  static constexpr float kUnit = 0.125f;
  static uint16_t d(const uint8_t* p) { return load_u16(p); }

  const uint8_t* p;
  I bits;
  Fields fields;
  INFER_SIMD explicit BookIQ2S(const uint8_t* at) : p(at), bits(i_load_words_twice(p + 34)) {
    // Bits 2 J and 2 J + 1 of byte i of qh move to bits 8 and 9 of word 4 i + J.
    static constexpr Bytes64 kOrder = bytes64([](int i) { return i % 2 ? kNoByte : i / 8; });
    static constexpr Bytes64 kFactors = words64([](int i) { return 256 >> 2 * (i % 4); });
    const I high = i_mul16(i_pick(i_repeat8(p + 66), i_load(&kOrder)), i_load(&kFactors));
    fields = i_fields(i_and_or(high, i_set1(0x03000300), i_load_u8(p + 2)));
  }
  template <int J>
  INFER_SIMD I codes() const {
    return i_entries8<J, 16>(kIQ2SGrid.data(), fields);
  }
  template <int J>
  INFER_SIMD Signs signs() const {
    static constexpr Bytes64 kOrder = bytes64([](int i) { return i / 8 % 2 * 8 + J; });
    static constexpr Bytes64 kBit = bytes64([](int i) { return 1 << i % 8; });
    return i_signs(i_pick(bits, i_load(&kOrder)), i_load(&kBit));
  }
  INFER_SIMD I scale() const { return odd_nibble_pairs(p + 74); }
};

struct BookIQ3XXS {
  static constexpr int kBytes = 98, kEntry = 4, kOffset = 0, kScales = 1;
  static constexpr bool kSigned = true, kFits16 = false;
  static constexpr float kUnit = 0.25f;
  static uint16_t d(const uint8_t* p) { return load_u16(p); }

  I words, bits;
  Fields fields;
  INFER_SIMD explicit BookIQ3XXS(const uint8_t* p)
      : words(i_load_words_twice(p + 66)),
        bits(i_join32(words, i_shl64<32>(parity7<0>(words)))),
        fields(i_fields(i_load(p + 2))) {}
  template <int J>
  INFER_SIMD I codes() const {
    return i_entries4<J, 8>(kIQ3XXSGrid.data(), fields);
  }
  template <int J>
  INFER_SIMD Signs signs() const {
    using At = FieldSigns<0>;
    // Of byte i: field 2 h + J / 2, where h is which half of the 64-bit lane.
    constexpr auto at = [](int i) { return At::bit(i / 4 % 2 * 2 + J / 2, J % 2 * 4 + i % 4); };
    static constexpr Bytes64 kOrder = bytes64([=](int i) { return i / 8 % 2 * 8 + at(i) / 8; });
    static constexpr Bytes64 kBit = bytes64([=](int i) { return 1 << at(i) % 8; });
    return i_signs(i_pick(bits, i_load(&kOrder)), i_load(&kBit));
  }
  INFER_SIMD I scale() const { return i_or(i_shr<27>(words), i_set1(1)); }
};

struct BookIQ3S {
  static constexpr int kBytes = 110, kEntry = 4, kOffset = 0, kScales = 1;
  static constexpr bool kSigned = true, kFits16 = true;
  static constexpr float kUnit = 1;
  static uint16_t d(const uint8_t* p) { return load_u16(p); }

  const uint8_t* p;
  I bits;
  Fields even, odd;  // indices of vectors 0 and 2, and of 1 and 3
  INFER_SIMD explicit BookIQ3S(const uint8_t* at) : p(at), bits(i_load_u16(p + 74)) {
    // Lane l has bits 4 (l % 2) + J of byte l / 2 of qh. Those of J = 0 and 2 move to bit 8 of the two words.
    static constexpr Bytes64 kOrder = bytes64([](int i) { return i % 2 ? kNoByte : i / 8; });
    static constexpr Bytes64 kFactors = words64([](int i) { return 256 >> i / 2 % 2 * 4 >> i % 2 * 2; });
    const I low = i_load(p + 2), bytes = i_set1(0x00ff00ff), ninth = i_set1(0x01000100);
    const I high = i_mul16(i_pick(i_repeat8(p + 66), i_load(&kOrder)), i_load(&kFactors));
    even = i_fields(i_and_or(high, ninth, i_and(low, bytes)));
    odd = i_fields(i_and_or(i_shr<1>(high), ninth, shift_mask<8>(low, bytes)));
  }
  template <int J>
  INFER_SIMD I codes() const {
    return i_entries4<J / 2, 16>(kIQ3SGrid.data(), J % 2 ? odd : even);
  }
  template <int J>
  INFER_SIMD Signs signs() const {
    static constexpr Bytes64 kOrder = bytes64([](int i) { return i / 4 % 4 * 4 + J / 2; });
    static constexpr Bytes64 kBit = bytes64([](int i) { return 1 << (J % 2 * 4 + i % 4); });
    return i_signs(i_pick(bits, i_load(&kOrder)), i_load(&kBit));
  }
  INFER_SIMD I scale() const {
    static constexpr Bytes64 kOrder = bytes64([](int i) { return i % 4 ? kNoByte : i / 16; });
    static constexpr Bytes64 kFactors = words64([](int i) { return i / 4 % 2 ? 2 : 32; });
    const I nibbles =
        i_mul16(i_pick(i_set1(static_cast<int32_t>(load_u32(p + 106))), i_load(&kOrder)), i_load(&kFactors));
    return i_and_or(i_shr<4>(nibbles), i_set1(0x1e), i_set1(1));
  }
};

// The formats of one bit: codes are 8 (t + 1) + 1 + delta, with an offset of 9.

struct BookIQ1S {
  static constexpr int kBytes = 50, kEntry = 8, kOffset = 9, kScales = 1;
  static constexpr bool kSigned = false, kFits16 = true;
  static constexpr float kUnit = 0.125f;
  static uint16_t d(const uint8_t* p) { return load_u16(p); }

  I words;  // qh in the upper half of a lane
  I minus;  // -1 where delta is
  Fields fields;
  INFER_SIMD explicit BookIQ1S(const uint8_t* p) {
    static constexpr Bytes64 kTop = bytes64([](int i) { return i % 4 < 2 ? kNoByte : i / 8 * 2 + i % 2; });
    // Bits 3 J .. 3 J + 2 of word i of qh move to bits 8 .. 10 of word 4 i + J; those of J = 3 from the upper byte.
    static constexpr Bytes64 kOrder = bytes64([](int i) {
      return i % 8 < 6 ? i / 8 * 2 + i % 2 : i % 2 ? kNoByte : i / 8 * 2 + 1;
    });
    static constexpr Bytes64 kFactors = words64([](int i) { return i % 4 < 3 ? 256 >> 3 * (i % 4) : 128; });
    const I qh = i_repeat16(p + 34);
    words = i_pick(qh, i_load(&kTop));
    minus = i_sar<31>(words);
    fields = i_fields(
        i_and_or(i_mul16(i_pick(qh, i_load(&kOrder)), i_load(&kFactors)), i_set1(0x07000700), i_load_u8(p + 2)));
  }
  template <int J>
  INFER_SIMD I codes() const {
    return i_or_andnot(i_entries8<J, 16>(kIQ1Grid.data(), fields), byte_mask(2), minus);
  }
  INFER_SIMD I scale() const { return i_and_or(i_shr<27>(words), i_set1(0xe), i_set1(1)); }
};

struct BookIQ1M {
  static constexpr int kBytes = 56, kEntry = 8, kOffset = 9, kScales = 2;
  static constexpr bool kSigned = false, kFits16 = true;
  static constexpr float kUnit = 0.125f;
  static uint16_t d(const uint8_t* p) {
    const uint64_t w = load_u64(p + 48);
    return static_cast<uint16_t>((w >> 12 & 15) | (w >> 24 & 0xf0) | (w >> 36 & 0xf00) | (w >> 48 & 0xf000));
  }

  const uint8_t* p;
  I qh;
  Fields fields;
  INFER_SIMD explicit BookIQ1M(const uint8_t* at) : p(at), qh(i_repeat16(p + 32)) {
    // The low three bits of nibble J of word i of qh move to bits 8 .. 10 of word 4 i + J.
    static constexpr Bytes64 kOrder = bytes64([](int i) {
      return i % 8 < 6 ? i / 8 * 2 + i % 2 : i % 2 ? kNoByte : i / 8 * 2 + 1;
    });
    static constexpr Bytes64 kFactors = words64([](int i) { return i % 4 < 3 ? 256 >> 4 * (i % 4) : 16; });
    fields =
        i_fields(i_and_or(i_mul16(i_pick(qh, i_load(&kOrder)), i_load(&kFactors)), i_set1(0x07000700), i_load_u8(p)));
  }
  template <int J>
  INFER_SIMD I codes() const {
    static constexpr Bytes64 kOrder = bytes64([](int i) { return i / 8 * 2 + J / 2; });
    const I minus = i_pick(i_shr < J % 2 ? 6 : 2 > (qh), i_load(&kOrder));  // in bit 1
    return i_or_andnot(i_entries8<J, 16>(kIQ1Grid.data(), fields), byte_mask(2), minus);
  }
  INFER_SIMD I scale() const {
    // Word i / 2 of the scales has those of lanes 2 i and 2 i + 1, from bit 6 (i % 2) on. The first of the word is
    // taken from a copy in the upper byte: it moves up by one bit, the others down.
    static constexpr Bytes64 kOrder = bytes64([](int i) {
      return i % 16 / 8 * 2 + i % 4 / 2 ? i / 16 * 2 + i % 2 : i % 2 ? i / 16 * 2 : kNoByte;
    });
    static constexpr Bytes64 kFactors =
        words64([](int i) { return i / 4 % 2 * 2 + i % 2 ? 0x20000 >> 3 * (i / 4 % 2 * 2 + i % 2) : 0x200; });
    const I scales = i_mul16_high(i_pick(i_repeat8(p + 48), i_load(&kOrder)), i_load(&kFactors));
    return i_and_or(scales, i_set1(0xe000e), i_set1(0x10001));
  }
};
