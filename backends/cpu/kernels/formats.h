// Unpacks each quantized format for 16 rows at once: lane = row, 4 codes of a row in the 4 bytes of a lane.
// Layouts are those of ggml-like/quant/blocks.h, formulas those of ggml-like/quant/dot.h. Included inside an anonymous
// namespace after a SIMD header.
//
// A super-block format has
//   kBytes, kBits (of a code), kSub (values per sub-block), kMin
//   kOffset: subtracted from unsigned codes; kSignedOffset for signed ones
//   Head: head.d, head.dmin, head.scale(s) as int32 lanes, head.mins(p): minima of sub-blocks 2p, 2p + 1 as int16 pairs
//   unpack(p, stride, sink): calls sink(s, w) for every sub-block s, w[kSub / 4]
//   kNarrow: sums of a sub-block fit in 16 bits once the offset is subtracted, so that one 16-bit multiply-add scales
//     them. The upper halves of scale(s) are zero, because the upper half of a negative sum is not
// A format with blocks of 32 has
//   kBytes, kOffset, kBits (of a code), kMin; block(p, stride, w[8], d, m)
// A format whose blocks consist of kParts blocks of 32 has block(p, stride, part, w[8], d) instead, with d[kScales] and
// kScales = 2 if each half of the 32 has its own scale.

// The 16-bit word at p + row * stride of every row, zero-extended.
INFER_SIMD I gather16(const uint8_t* p, size_t stride) {
  alignas(64) int32_t t[16];
  for (int i = 0; i < 16; ++i) {
    uint16_t x;
    __builtin_memcpy(&x, p + i * stride, 2);
    t[i] = x;
  }
  return i_load(t);
}
INFER_SIMD I gather32(const uint8_t* p, size_t stride) {
  alignas(64) int32_t t[16];
  for (int i = 0; i < 16; ++i) __builtin_memcpy(&t[i], p + i * stride, 4);
  return i_load(t);
}
INFER_SIMD I gather8(const uint8_t* p, size_t stride) {
  alignas(64) int32_t t[16];
  for (int i = 0; i < 16; ++i) t[i] = p[i * stride];
  return i_load(t);
}
INFER_SIMD I byte_mask(int x) { return i_set1(static_cast<int>(static_cast<unsigned>(x) * 0x01010101u)); }
// a >> N per byte, with `mask` clearing the bits that crossed bytes.
template <int N>
INFER_SIMD I shift_mask(I a, I mask) {
  return i_and(i_shr<N>(a), mask);
}

// Scales and minima of Q4_K and Q5_K, from the first 16 bytes of the block.
struct HeadQ4K {
  F d, dmin;
  I low, high, min_low, min_high;  // four bytes each: sub-blocks 0..3, 4..7
  INFER_SIMD HeadQ4K(const uint8_t* p, size_t stride) {
    I h[4];
    i_transpose(p, stride, h);
    d = f_from_f16_lanes(h[0]);
    dmin = f_from_f16_lanes(i_shr<16>(h[0]));
    const I m6 = byte_mask(0x3f), m4 = byte_mask(0x0f), m2 = byte_mask(0x30);
    low = i_and(h[1], m6);
    min_low = i_and(h[2], m6);
    high = i_or(i_and(h[3], m4), i_and(i_shr<2>(h[1]), m2));
    min_high = i_or(shift_mask<4>(h[3], m4), i_and(i_shr<2>(h[2]), m2));
  }
  template <int S>
  INFER_SIMD I scale() const {
    return i_and(i_shr<8 * (S % 4)>(S < 4 ? low : high), i_set1(255));
  }
  template <int P>
  INFER_SIMD I mins() const {
    const I m = P < 2 ? min_low : min_high;
    if constexpr (P % 2 == 0) return i_bytes<0, -1, 1, -1>(m);
    else return i_bytes<2, -1, 3, -1>(m);
  }
  // Scales of sub-blocks 2p, 2p + 1 as int16 pairs.
  template <int P>
  INFER_SIMD I scale_pair() const {
    const I m = P < 2 ? low : high;
    if constexpr (P % 2 == 0) return i_bytes<0, -1, 1, -1>(m);
    else return i_bytes<2, -1, 3, -1>(m);
  }
};

struct Q4K {
  static constexpr int kBytes = 144, kSub = 32, kOffset = 8, kBits = 4;
  static constexpr bool kMin = true, kSigned = false, kNarrow = true;
  using Head = HeadQ4K;
  template <int S, typename Sink>
  static INFER_SIMD void pair(const uint8_t* p, size_t stride, const Sink& sink) {
    const I m4 = byte_mask(15);
    I o[8], a[8], b[8];
    i_transpose(p + 16 + 32 * S, stride, o);
    i_transpose(p + 32 + 32 * S, stride, o + 4);
    for (int i = 0; i < 8; ++i) a[i] = i_and(o[i], m4), b[i] = shift_mask<4>(o[i], m4);
    sink.template operator()<2 * S>(a);
    sink.template operator()<2 * S + 1>(b);
  }
  template <typename Sink>
  static INFER_SIMD void unpack(const uint8_t* p, size_t stride, const Sink& sink) {
    pair<0>(p, stride, sink), pair<1>(p, stride, sink), pair<2>(p, stride, sink), pair<3>(p, stride, sink);
  }
};

struct Q5K {
  static constexpr int kBytes = 176, kSub = 32, kOffset = 0, kBits = 5;
  static constexpr bool kMin = true, kSigned = false, kNarrow = false;
  using Head = HeadQ4K;
  template <int S, typename Sink>
  static INFER_SIMD void pair(const uint8_t* p, size_t stride, const Sink& sink, const I* high) {
    const I m4 = byte_mask(15), m5 = byte_mask(16);
    I o[8], a[8], b[8];
    i_transpose(p + 48 + 32 * S, stride, o);
    i_transpose(p + 64 + 32 * S, stride, o + 4);
    for (int i = 0; i < 8; ++i) {
      // Bit 2S and 2S + 1 of each byte of qh move to bit 4.
      const I wide_a =
          2 * S <= 4 ? i_shl<(2 * S <= 4 ? 4 - 2 * S : 0)>(high[i]) : i_shr<(2 * S > 4 ? 2 * S - 4 : 0)>(high[i]);
      const I wide_b = 2 * S + 1 <= 4 ? i_shl<(2 * S + 1 <= 4 ? 3 - 2 * S : 0)>(high[i])
                                      : i_shr<(2 * S + 1 > 4 ? 2 * S - 3 : 0)>(high[i]);
      a[i] = i_or(i_and(o[i], m4), i_and(wide_a, m5));
      b[i] = i_or(shift_mask<4>(o[i], m4), i_and(wide_b, m5));
    }
    sink.template operator()<2 * S>(a);
    sink.template operator()<2 * S + 1>(b);
  }
  template <typename Sink>
  static INFER_SIMD void unpack(const uint8_t* p, size_t stride, const Sink& sink) {
    I high[8];
    i_transpose(p + 16, stride, high);
    i_transpose(p + 32, stride, high + 4);
    pair<0>(p, stride, sink, high), pair<1>(p, stride, sink, high), pair<2>(p, stride, sink, high),
        pair<3>(p, stride, sink, high);
  }
};

struct Q2K {
  static constexpr int kBytes = 84, kSub = 16, kOffset = 0, kBits = 2;
  static constexpr bool kMin = true, kSigned = false, kNarrow = true;
  struct Head {
    F d, dmin;
    I scales[4];
    INFER_SIMD Head(const uint8_t* p, size_t stride) {
      i_transpose(p, stride, scales);
      const I x = gather32(p + 80, stride);
      d = f_from_f16_lanes(x);
      dmin = f_from_f16_lanes(i_shr<16>(x));
    }
    template <int S>
    INFER_SIMD I scale() const {
      return i_and(i_shr<8 * (S % 4)>(scales[S / 4]), i_set1(15));
    }
    template <int P>
    INFER_SIMD I mins() const {
      const I m = i_and(i_shr<4>(scales[P / 2]), byte_mask(15));
      if constexpr (P % 2 == 0) return i_bytes<0, -1, 1, -1>(m);
      else return i_bytes<2, -1, 3, -1>(m);
    }
  };
  // Bytes 16 q .. 16 q + 15 of qs hold sub-blocks 8 (q / 2) + q % 2 + {0, 2, 4, 6}.
  template <int Q, typename Sink>
  static INFER_SIMD void quarter(const uint8_t* p, size_t stride, const Sink& sink) {
    const I m2 = byte_mask(3);
    I o[4], a[4];
    i_transpose(p + 16 + 16 * Q, stride, o);
    constexpr int kFirst = 8 * (Q / 2) + Q % 2;
    for (int i = 0; i < 4; ++i) a[i] = i_and(o[i], m2);
    sink.template operator()<kFirst>(a);
    for (int i = 0; i < 4; ++i) a[i] = shift_mask<2>(o[i], m2);
    sink.template operator()<kFirst + 2>(a);
    for (int i = 0; i < 4; ++i) a[i] = shift_mask<4>(o[i], m2);
    sink.template operator()<kFirst + 4>(a);
    for (int i = 0; i < 4; ++i) a[i] = shift_mask<6>(o[i], m2);
    sink.template operator()<kFirst + 6>(a);
  }
  template <typename Sink>
  static INFER_SIMD void unpack(const uint8_t* p, size_t stride, const Sink& sink) {
    quarter<0>(p, stride, sink), quarter<1>(p, stride, sink), quarter<2>(p, stride, sink), quarter<3>(p, stride, sink);
  }
};

struct Q3K {
  static constexpr int kBytes = 110, kSub = 16, kOffset = 4, kBits = 3;
  static constexpr bool kMin = false, kSigned = false, kNarrow = true;
  struct Head {
    F d;
    I scales[4];  // four signed bytes each
    INFER_SIMD Head(const uint8_t* p, size_t stride) {
      d = f_from_f16_lanes(gather16(p + 108, stride));
      const I a = gather32(p + 96, stride), b = gather32(p + 100, stride), c = gather32(p + 104, stride);
      const I m4 = byte_mask(15), m2 = byte_mask(0x30);
      scales[0] = i_or(i_and(a, m4), i_and(i_shl<4>(c), m2));
      scales[1] = i_or(i_and(b, m4), i_and(i_shl<2>(c), m2));
      scales[2] = i_or(shift_mask<4>(a, m4), i_and(c, m2));
      scales[3] = i_or(shift_mask<4>(b, m4), i_and(i_shr<2>(c), m2));
    }
    template <int S>
    INFER_SIMD I scale() const {
      // Only the low 16 bits: the multiply-add uses the upper half as a second factor (see kNarrow).
      return i_and(i_sub(i_and(i_shr<8 * (S % 4)>(scales[S / 4]), i_set1(63)), i_set1(32)), i_set1(0xffff));
    }
  };
  template <int Q, int K, typename Sink>
  static INFER_SIMD void sub(const I* low, const I* high, const Sink& sink) {
    constexpr int kBit = 4 * (Q / 2) + K;  // i / 32
    const I m2 = byte_mask(3), m3 = byte_mask(4);
    I a[4];
    for (int i = 0; i < 4; ++i) {
      const I bit = kBit <= 2 ? i_shl<(kBit <= 2 ? 2 - kBit : 0)>(high[i]) : i_shr<(kBit > 2 ? kBit - 2 : 0)>(high[i]);
      a[i] = i_or(shift_mask<2 * K>(low[i], m2), i_and(bit, m3));
    }
    sink.template operator()<8 * (Q / 2) + Q % 2 + 2 * K>(a);
  }
  template <int Q, typename Sink>
  static INFER_SIMD void quarter(const uint8_t* p, size_t stride, const I* high, const Sink& sink) {
    I o[4];
    i_transpose(p + 32 + 16 * Q, stride, o);
    sub<Q, 0>(o, high, sink), sub<Q, 1>(o, high, sink), sub<Q, 2>(o, high, sink), sub<Q, 3>(o, high, sink);
  }
  template <typename Sink>
  static INFER_SIMD void unpack(const uint8_t* p, size_t stride, const Sink& sink) {
    I high[8];
    i_transpose(p, stride, high);
    i_transpose(p + 16, stride, high + 4);
    quarter<0>(p, stride, high, sink), quarter<1>(p, stride, high + 4, sink), quarter<2>(p, stride, high, sink),
        quarter<3>(p, stride, high + 4, sink);
  }
};

struct Q6K {
  static constexpr int kBytes = 210, kSub = 16, kOffset = 32, kBits = 6;
  static constexpr bool kMin = false, kSigned = false, kNarrow = false;
  struct Head {
    F d;
    I scales[4];
    INFER_SIMD Head(const uint8_t* p, size_t stride) {
      d = f_from_f16_lanes(gather16(p + 208, stride));
      i_transpose(p + 192, stride, scales);
    }
    template <int S>
    INFER_SIMD I scale() const {
      return i_sar<24>(i_shl<24 - 8 * (S % 4)>(scales[S / 4]));
    }
  };
  // Values 128 H + 16 J + {0, 32, 64, 96} .. + 15.
  template <int H, int J, typename Sink>
  static INFER_SIMD void part(const uint8_t* p, size_t stride, const Sink& sink) {
    const I m4 = byte_mask(15), m2 = byte_mask(0x30);
    I x[4], y[4], h[4], a[4];
    i_transpose(p + 64 * H + 16 * J, stride, x);
    i_transpose(p + 64 * H + 32 + 16 * J, stride, y);
    i_transpose(p + 128 + 32 * H + 16 * J, stride, h);
    constexpr int kFirst = 8 * H + J;
    for (int i = 0; i < 4; ++i) a[i] = i_or(i_and(x[i], m4), i_and(i_shl<4>(h[i]), m2));
    sink.template operator()<kFirst>(a);
    for (int i = 0; i < 4; ++i) a[i] = i_or(i_and(y[i], m4), i_and(i_shl<2>(h[i]), m2));
    sink.template operator()<kFirst + 2>(a);
    for (int i = 0; i < 4; ++i) a[i] = i_or(shift_mask<4>(x[i], m4), i_and(h[i], m2));
    sink.template operator()<kFirst + 4>(a);
    for (int i = 0; i < 4; ++i) a[i] = i_or(shift_mask<4>(y[i], m4), i_and(i_shr<2>(h[i]), m2));
    sink.template operator()<kFirst + 6>(a);
  }
  template <typename Sink>
  static INFER_SIMD void unpack(const uint8_t* p, size_t stride, const Sink& sink) {
    part<0, 0>(p, stride, sink), part<0, 1>(p, stride, sink), part<1, 0>(p, stride, sink), part<1, 1>(p, stride, sink);
  }
};

alignas(16) constexpr int8_t kIQ4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
alignas(16) constexpr int8_t kMX4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

struct IQ4XS {
  static constexpr int kBytes = 136, kSub = 32, kOffset = kSignedOffset, kBits = 8;
  static constexpr bool kMin = false, kSigned = true, kNarrow = false;
  struct Head {
    F d;
    I low, high;  // low: a nibble per sub-block, high: two bits per sub-block
    INFER_SIMD Head(const uint8_t* p, size_t stride) {
      const I x = gather32(p, stride);
      d = f_from_f16_lanes(x);
      high = i_shr<16>(x);
      low = gather32(p + 4, stride);
    }
    template <int S>
    INFER_SIMD I scale() const {
      const I l = i_and(i_shr<4 * S>(low), i_set1(15)), h = i_and(i_shr<2 * S>(high), i_set1(3));
      return i_sub(i_or(l, i_shl<4>(h)), i_set1(32));
    }
  };
  template <int S, typename Sink>
  static INFER_SIMD void sub(const uint8_t* p, size_t stride, const Sink& sink) {
    const I m4 = byte_mask(15);
    I o[4], a[8];
    i_transpose(p + 8 + 16 * S, stride, o);
    for (int i = 0; i < 4; ++i) {
      a[i] = i_prepare_s8(i_lookup(kIQ4, i_and(o[i], m4)));
      a[i + 4] = i_prepare_s8(i_lookup(kIQ4, shift_mask<4>(o[i], m4)));
    }
    sink.template operator()<S>(a);
  }
  template <typename Sink>
  static INFER_SIMD void unpack(const uint8_t* p, size_t stride, const Sink& sink) {
    sub<0>(p, stride, sink), sub<1>(p, stride, sink), sub<2>(p, stride, sink), sub<3>(p, stride, sink);
    sub<4>(p, stride, sink), sub<5>(p, stride, sink), sub<6>(p, stride, sink), sub<7>(p, stride, sink);
  }
};

// Codes of the formats with 4-bit blocks of 32: 16 bytes, low nibbles first.
INFER_SIMD void nibbles(const uint8_t* p, size_t stride, I* w) {
  const I m4 = byte_mask(15);
  I o[4];
  i_transpose(p, stride, o);
  for (int i = 0; i < 4; ++i) w[i] = i_and(o[i], m4), w[i + 4] = shift_mask<4>(o[i], m4);
}
// Moves four bits of x, from bit N on, to bit 4 of each byte.
template <int N>
INFER_SIMD I fifth_bits(I x) {
  const I b = i_shr<N>(x);
  return i_or(i_or(i_and(i_shl<4>(b), i_set1(0x10)), i_and(i_shl<11>(b), i_set1(0x1000))),
              i_or(i_and(i_shl<18>(b), i_set1(0x100000)), i_and(i_shl<25>(b), i_set1(0x10000000))));
}
INFER_SIMD void add_fifth_bits(I x, I* w) {
  w[0] = i_or(w[0], fifth_bits<0>(x)), w[1] = i_or(w[1], fifth_bits<4>(x)), w[2] = i_or(w[2], fifth_bits<8>(x));
  w[3] = i_or(w[3], fifth_bits<12>(x)), w[4] = i_or(w[4], fifth_bits<16>(x)), w[5] = i_or(w[5], fifth_bits<20>(x));
  w[6] = i_or(w[6], fifth_bits<24>(x)), w[7] = i_or(w[7], fifth_bits<28>(x));
}

struct Q40 {
  static constexpr int kBytes = 18, kOffset = 8, kBits = 4;
  static constexpr bool kMin = false, kSigned = false;
  static INFER_SIMD void block(const uint8_t* p, size_t stride, I* w, F& d, F&) {
    d = f_from_f16_lanes(gather16(p, stride));
    nibbles(p + 2, stride, w);
  }
};
struct Q41 {
  static constexpr int kBytes = 20, kOffset = 0, kBits = 4;
  static constexpr bool kMin = true, kSigned = false;
  static INFER_SIMD void block(const uint8_t* p, size_t stride, I* w, F& d, F& m) {
    const I x = gather32(p, stride);
    d = f_from_f16_lanes(x), m = f_from_f16_lanes(i_shr<16>(x));
    nibbles(p + 4, stride, w);
  }
};
struct Q50 {
  static constexpr int kBytes = 22, kOffset = 16, kBits = 5;
  static constexpr bool kMin = false, kSigned = false;
  static INFER_SIMD void block(const uint8_t* p, size_t stride, I* w, F& d, F&) {
    d = f_from_f16_lanes(gather16(p, stride));
    nibbles(p + 6, stride, w);
    add_fifth_bits(gather32(p + 2, stride), w);
  }
};
struct Q51 {
  static constexpr int kBytes = 24, kOffset = 0, kBits = 5;
  static constexpr bool kMin = true, kSigned = false;
  static INFER_SIMD void block(const uint8_t* p, size_t stride, I* w, F& d, F& m) {
    const I x = gather32(p, stride);
    d = f_from_f16_lanes(x), m = f_from_f16_lanes(i_shr<16>(x));
    nibbles(p + 8, stride, w);
    add_fifth_bits(gather32(p + 4, stride), w);
  }
};
struct Q80 {
  static constexpr int kBytes = 34, kOffset = kSignedOffset, kBits = 8;
  static constexpr bool kMin = false, kSigned = true;
  static INFER_SIMD void block(const uint8_t* p, size_t stride, I* w, F& d, F&) {
    d = f_from_f16_lanes(gather16(p, stride));
    i_transpose(p + 2, stride, w);
    i_transpose(p + 18, stride, w + 4);
    for (int i = 0; i < 8; ++i) w[i] = i_prepare_s8(w[i]);
  }
};
struct IQ4NL {
  static constexpr int kBytes = 18, kOffset = kSignedOffset, kBits = 8;
  static constexpr bool kMin = false, kSigned = true;
  static INFER_SIMD void block(const uint8_t* p, size_t stride, I* w, F& d, F&) {
    d = f_from_f16_lanes(gather16(p, stride));
    nibbles(p + 2, stride, w);
    for (int i = 0; i < 8; ++i) w[i] = i_prepare_s8(i_lookup(kIQ4, w[i]));
  }
};
struct MXFP4 {
  static constexpr int kBytes = 17, kOffset = kSignedOffset, kBits = 8;
  static constexpr bool kMin = false, kSigned = true;
  static INFER_SIMD void block(const uint8_t* p, size_t stride, I* w, F& d, F&) {
    // 2^(e - 128): exponent field e - 1, and denormals for e = 0 and 1.
    const I e = gather8(p, stride);
    const I normal = i_shl<23>(i_sub(e, i_set1(1)));
    const I small = i_shl<21>(i_add(e, i_set1(1)));  // e = 0: 2^-128, e = 1: 2^-127
    const I is_small = i_sar<31>(i_sub(e, i_set1(2)));
    d = f_from_bits(i_or(i_and(is_small, small), i_and(i_xor(is_small, i_set1(-1)), normal)));
    nibbles(p + 1, stride, w);
    for (int i = 0; i < 8; ++i) w[i] = i_prepare_s8(i_lookup(kMX4, w[i]));
  }
};
// E4M3 without a sign, halved, as ue4m3_to_f32_half() of half.h computes it, of a byte in each lane. No operation has a
// denormal operand: that takes some processors a hundred cycles.
INFER_SIMD F f_from_ue4m3_half(I bytes) {
  const I not_zero = i_sar<31>(i_sub(i_zero(), i_xor(bytes, i_set1(0x7f))));  // 0x7f is zero
  const I normal = i_add(i_shl<20>(i_and(bytes, i_set1(0x7f))), i_set1(119 << 23));
  const F smallest = f_set1(0x1p-7f), denormal = f_sub(f_from_bits(i_add(normal, i_set1(1 << 23))), smallest);
  return f_from_bits(
      i_and(not_zero, f_bits(f_select_less(f_from_bits(normal), smallest, denormal, f_from_bits(normal)))));
}
struct NVFP4 {
  static constexpr int kBytes = 36, kParts = 2, kScales = 2, kOffset = 12, kBits = 5;
  static constexpr bool kMin = false, kSigned = false;
  static INFER_SIMD void block(const uint8_t* p, size_t stride, int part, I* w, F* d) {
    const I scales = gather16(p + 2 * part, stride);
    d[0] = f_from_ue4m3_half(i_and(scales, i_set1(255))), d[1] = f_from_ue4m3_half(i_shr<8>(scales));
    unpack(p + 4 + 16 * part, stride, w);
  }
  // The codes of 16 bytes.
  static INFER_SIMD void unpack(const uint8_t* p, size_t stride, I* w) {
    alignas(16) static constexpr int8_t kAbove[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
    const I m4 = byte_mask(15);
    I o[4];
    i_transpose(p, stride, o);
    for (int i = 0; i < 4; ++i) {
      I* to = w + i / 2 * 4 + i % 2;
      to[0] = i_lookup(kAbove, i_and(o[i], m4)), to[2] = i_lookup(kAbove, shift_mask<4>(o[i], m4));
    }
  }
};
struct Q10 {
  static constexpr int kBytes = 18, kParts = 4, kOffset = 1, kBits = 2;
  static constexpr bool kMin = false, kSigned = false;
  static INFER_SIMD void block(const uint8_t* p, size_t stride, int part, I* w, F* d) {
    *d = f_from_f16_lanes(gather16(p, stride));
    for (int i = 0; i < 8; ++i) w[i] = i_zero();
    add_fifth_bits(gather32(p + 2 + 4 * part, stride), w);
    for (int i = 0; i < 8; ++i) w[i] = i_shr<3>(w[i]);
  }
};
struct Q20 {
  static constexpr int kBytes = 18, kParts = 2, kOffset = 1, kBits = 2;
  static constexpr bool kMin = false, kSigned = false;
  // Byte N as four codes of two bits, one in each byte.
  template <int N>
  static INFER_SIMD I codes(I x) {
    const I b = i_and(i_shr<8 * N>(x), i_set1(255));
    return i_and(i_or(i_or(b, i_shl<6>(b)), i_or(i_shl<12>(b), i_shl<18>(b))), byte_mask(3));
  }
  static INFER_SIMD void block(const uint8_t* p, size_t stride, int part, I* w, F* d) {
    *d = f_from_f16_lanes(gather16(p, stride));
    for (int h = 0; h < 2; ++h) {
      const I x = gather32(p + 2 + 8 * part + 4 * h, stride);
      w[4 * h] = codes<0>(x), w[4 * h + 1] = codes<1>(x), w[4 * h + 2] = codes<2>(x), w[4 * h + 3] = codes<3>(x);
    }
  }
};
