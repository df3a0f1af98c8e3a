// Products of super-block weights with one token, which memory limits: weights are read in the order they lie in, block
// after block and row after row, so that the processor's own prefetcher follows. Lanes are 16 groups of four
// consecutive values of a block; sixteen blocks at a time their sums turn into lanes that are blocks. Same bits as
// products_quantized.h: integers are exact, and the blocks of a row are added in ascending order.
// Included inside an anonymous namespace after products_quantized.h.
//
// A format has
//   Scales(head): the scales of 16 blocks, at hand one by one
//   sums(p, scales, i, x): block i at p times x; the lanes' total is the sum over sub-blocks of scale * codes * x. Sums
//   of
//     four products fit 16 bits, so that one 16-bit multiply-add scales them.
//   correct(head, xs, isum): what has to be added to the totals of 16 blocks; xs[i] are the sums of activations of lane
//   i

constexpr int64_t kStreamDistance = 16384;  // bytes prefetched ahead

struct ScalesQ4K {
  alignas(64) int32_t low[16], high[16];  // four bytes each: sub-blocks 0..3, 4..7
  INFER_SIMD explicit ScalesQ4K(const HeadQ4K& head) {
    i_store(low, head.low);
    i_store(high, head.high);
  }
};

struct OneQ4K : Q4K {
  using Scales = ScalesQ4K;
  // Sub-blocks 2 J and 2 J + 1: low and high nibbles of the same 32 bytes.
  template <int J>
  static INFER_SIMD I pair(const uint8_t* p, const Scales& scales, int i, const Activation256& x, I acc) {
    const I w = i_and(i_shr_second<4>(i_load_twice(p + 16 + 32 * J)), byte_mask(15));
    return i_madd16(acc, i_dot_u8(i_zero(), w, i_load(x.q + 64 * J)),
                    i_spread_halves<2 * J % 4>(J < 2 ? scales.low[i] : scales.high[i]));
  }
  static INFER_SIMD I sums(const uint8_t* p, const Scales& scales, int i, const Activation256& x) {
    const I a = pair<1>(p, scales, i, x, pair<0>(p, scales, i, x, i_zero()));
    return pair<3>(p, scales, i, x, pair<2>(p, scales, i, x, a));
  }
};

struct OneQ5K : Q5K {
  using Scales = ScalesQ4K;
  // `high` has the fifth bits of sub-block 2 J at bit 2 J of its first 32 bytes and those of 2 J + 1 in the others.
  template <int J>
  static INFER_SIMD I pair(const uint8_t* p, I high, const Scales& scales, int i, const Activation256& x, I acc) {
    const I bit = J < 2 ? i_shl < J < 2 ? 4 - 2 * J : 0 > (high) : i_shr < J < 2 ? 0 : 2 * J - 4 > (high);
    const I low = i_and(i_shr_second<4>(i_load_twice(p + 48 + 32 * J)), byte_mask(15));
    return i_madd16(acc, i_dot_u8(i_zero(), i_or(low, i_and(bit, byte_mask(16))), i_load(x.q + 64 * J)),
                    i_spread_halves<2 * J % 4>(J < 2 ? scales.low[i] : scales.high[i]));
  }
  static INFER_SIMD I sums(const uint8_t* p, const Scales& scales, int i, const Activation256& x) {
    const I high = i_shr_second<1>(i_load_twice(p + 16));
    const I a = pair<1>(p, high, scales, i, x, pair<0>(p, high, scales, i, x, i_zero()));
    return pair<3>(p, high, scales, i, x, pair<2>(p, high, scales, i, x, a));
  }
};

struct OneQ6K : Q6K {
  struct Scales {
    INFER_SIMD explicit Scales(const Head&) {}
  };
  template <int H>
  static INFER_SIMD I half(const uint8_t* p, const int8_t* x, I acc) {
    const I m4 = byte_mask(15), m2 = byte_mask(0x30), q = i_load(p + 64 * H);
    const I high = i_shr_second<2>(i_load_twice(p + 128 + 32 * H));
    const I a = i_or(i_and(q, m4), i_and(i_shl<4>(high), m2)), b = i_or(shift_mask<4>(q, m4), i_and(high, m2));
    acc = i_madd16(acc, i_dot_u8(i_zero(), a, i_load(x)), i_spread_quarters(load_int(p + 192 + 8 * H)));
    return i_madd16(acc, i_dot_u8(i_zero(), b, i_load(x + 64)), i_spread_quarters(load_int(p + 196 + 8 * H)));
  }
  static INFER_SIMD I sums(const uint8_t* p, const Scales&, int, const Activation256& x) {
    return half<1>(p, x.q + 128, half<0>(p, x.q, i_zero()));
  }
};

// The sums of activations that lane i of a chunk needs: sum32, or sum16 where sub-blocks have 16 values.
struct LaneSums {
  static constexpr int kBytes = 32;
  alignas(64) uint8_t bytes[16 * kBytes];
};

// sum over sub-blocks of minimum * sum of activations, for 16 blocks.
INFER_SIMD I lane_minima(const HeadQ4K& head, const LaneSums& xs) {
  I pair[4];
  i_transpose(xs.bytes, LaneSums::kBytes, pair);
  const I acc = i_madd16(i_madd16(i_zero(), head.mins<0>(), pair[0]), head.mins<1>(), pair[1]);
  return i_madd16(i_madd16(acc, head.mins<2>(), pair[2]), head.mins<3>(), pair[3]);
}

// 32 * sum over sub-blocks of scale * sum of activations. Scales stand in the upper bytes of 16-bit pairs: 256 times
// the sum still fits 32 bits.
INFER_SIMD I lane_offset(const Q6K::Head& head, const LaneSums& xs) {
  I acc = i_zero(), pair[8];
  i_transpose(xs.bytes, LaneSums::kBytes, pair);
  i_transpose(xs.bytes + 16, LaneSums::kBytes, pair + 4);
  for (int i = 0; i < 4; ++i) {
    acc = i_madd16(acc, i_bytes<-1, 0, -1, 1>(head.scales[i]), pair[2 * i]);
    acc = i_madd16(acc, i_bytes<-1, 2, -1, 3>(head.scales[i]), pair[2 * i + 1]);
  }
  return i_sar<3>(acc);
}

// Walks the blocks of a vector of activations again and again.
struct Walker {
  const Activation256 *begin, *end, *at;
  int64_t stride;
  INFER_SIMD const Activation256& next() {
    const Activation256& x = *at;
    at += stride;
    if (at == end) at = begin;
    return x;
  }
};

// Sixteen blocks from p on, with as many prefetched from `ahead` on; v[i] is what fma(v[i], x.d, acc) adds for block i.
template <typename W>
INFER_SIMD void chunk(const uint8_t* p, const uint8_t* ahead, Walker& walker, float* v, float* d) {
  const typename W::Head head(p, W::kBytes);
  const typename W::Scales scales(head);
  LaneSums xs;
  I sums[16];
  for (int i = 0; i < 16; ++i) {
    const Activation256& x = walker.next();
    const uint8_t* block = p + W::kBytes * i;
    for (int at = 0; at < W::kBytes; at += 64) __builtin_prefetch(ahead + W::kBytes * i + at, 0, 2);
    sums[i] = W::sums(block, scales, i, x);
    __builtin_memcpy(xs.bytes + LaneSums::kBytes * i, W::kSub == 16 ? x.sum16 : x.sum32, 512 / W::kSub);
    d[i] = x.d;
  }
  const I total = i_sum_each(sums);
  if constexpr (W::kMin) {
    const F f = f_mul(f_from_int(total), head.d);
    f_store(v, f_fnma(f_from_int(lane_minima(head, xs)), head.dmin, f));
  } else {
    f_store(v, f_mul(f_from_int(i_sub(total, lane_offset(head, xs))), head.d));
  }
}

template <typename W>
INFER_OUTLINE void one_token(const ProductArgs& a) {
  const auto* x = static_cast<const Activation256*>(a.x);
  const int64_t blocks = a.k / 256, total = (a.row_end - a.row_begin) * blocks;
  Walker walker{x, x + blocks * a.x_stride, x, a.x_stride};
  const uint8_t* p = a.weight + a.row_begin * a.row_bytes;
  float* out = a.out[0] + a.row_begin;
  float acc = 0;
  int64_t left = blocks;  // of the row
  alignas(64) float v[16], d[16];
  alignas(64) uint8_t copy[16 * W::kBytes + 64];
  for (int64_t first = 0; first < total; first += 16, p += 16 * W::kBytes) {
    const uint8_t* ahead = in_stream(a, p + kStreamDistance);
    const int count = total - first < 16 ? static_cast<int>(total - first) : 16;
    if (count == 16) {
      chunk<W>(p, ahead, walker, v, d);
    } else {
      __builtin_memset(copy, 0, sizeof(copy));
      __builtin_memcpy(copy, p, static_cast<size_t>(count) * W::kBytes);
      chunk<W>(copy, ahead, walker, v, d);
    }
    for (int i = 0; i < count; ++i) {
      acc = __builtin_fmaf(v[i], d[i], acc);
      if (--left == 0) {
        *out++ = acc;
        acc = 0;
        left = blocks;
      }
    }
  }
}

template <typename W>
void product_streamed(const ProductArgs& a) {
  if (a.n_tokens == 1) one_token<W>(a);
  else product_super<W>(a);
}
