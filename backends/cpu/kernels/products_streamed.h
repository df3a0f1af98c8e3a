// Products of super-block weights with few tokens, which memory limits: weights are read in the order they lie in,
// block after block and row after row, so that the processor's own prefetcher follows. Lanes are 16 groups of four
// consecutive values of a block; sixteen blocks at a time their sums turn into lanes that are blocks. Same bits as
// products_quantized.h: integers are exact, and the blocks of a row are added in ascending order.
// Included inside an anonymous namespace after products_quantized.h.
//
// A format has
//   Scales(head): the scales of 16 blocks, at hand one by one
//   Block(p, scales, i): block i at p, taken apart

constexpr int64_t kStreamDistance = 16384;  // bytes prefetched ahead

// The codes of a block, 64 values each in the order of the activations, and what to multiply sums of four by.
struct TakenBlock {
  I codes[4], factors[4];
  // The lanes' total is the sum over sub-blocks of scale * codes * x. Sums of four products fit 16 bits, so that one
  // 16-bit multiply-add scales them.
  INFER_SIMD I sums(const Activation256& x) const {
    I acc = i_zero();
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) acc = i_madd16(acc, i_dot_u8(i_zero(), codes[j], i_load(x.q + 64 * j)), factors[j]);
    return acc;
  }
};

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
  struct Block : TakenBlock {
    INFER_SIMD Block(const uint8_t* p, const Scales& scales, int i) {
      take<0>(p, scales, i), take<1>(p, scales, i), take<2>(p, scales, i), take<3>(p, scales, i);
    }
    template <int J>
    INFER_SIMD void take(const uint8_t* p, const Scales& scales, int i) {
      codes[J] = i_and(i_shr_second<4>(i_load_twice(p + 16 + 32 * J)), byte_mask(15));
      factors[J] = i_spread_halves<2 * J % 4>(J < 2 ? scales.low[i] : scales.high[i]);
    }
  };
};

struct OneQ5K : Q5K {
  using Scales = ScalesQ4K;
  // `high` has the fifth bits of sub-block 2 J at bit 2 J of its first 32 bytes and those of 2 J + 1 in the others.
  struct Block : TakenBlock {
    INFER_SIMD Block(const uint8_t* p, const Scales& scales, int i) {
      const I high = i_shr_second<1>(i_load_twice(p + 16));
      take<0>(p, high, scales, i), take<1>(p, high, scales, i);
      take<2>(p, high, scales, i), take<3>(p, high, scales, i);
    }
    template <int J>
    INFER_SIMD void take(const uint8_t* p, I high, const Scales& scales, int i) {
      const I bit = J < 2 ? i_shl < J < 2 ? 4 - 2 * J : 0 > (high) : i_shr < J < 2 ? 0 : 2 * J - 4 > (high);
      const I low = i_and(i_shr_second<4>(i_load_twice(p + 48 + 32 * J)), byte_mask(15));
      codes[J] = i_or(low, i_and(bit, byte_mask(16)));
      factors[J] = i_spread_halves<2 * J % 4>(J < 2 ? scales.low[i] : scales.high[i]);
    }
  };
};

struct OneQ6K : Q6K {
  struct Scales {
    INFER_SIMD explicit Scales(const Head&) {}
  };
  struct Block : TakenBlock {
    INFER_SIMD Block(const uint8_t* p, const Scales&, int) { take<0>(p), take<1>(p); }
    template <int H>
    INFER_SIMD void take(const uint8_t* p) {
      const I m4 = byte_mask(15), m2 = byte_mask(0x30), q = i_load(p + 64 * H);
      const I high = i_shr_second<2>(i_load_twice(p + 128 + 32 * H));
      codes[2 * H] = i_or(i_and(q, m4), i_and(i_shl<4>(high), m2));
      codes[2 * H + 1] = i_or(shift_mask<4>(q, m4), i_and(high, m2));
      factors[2 * H] = i_spread_quarters(load_int(p + 192 + 8 * H));
      factors[2 * H + 1] = i_spread_quarters(load_int(p + 196 + 8 * H));
    }
  };
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

// Walks the blocks of the activations again and again: T tokens side by side.
struct Walker {
  const Activation256 *begin, *end, *at;
  int64_t stride;
  INFER_SIMD const Activation256* next() {
    const Activation256* x = at;
    at += stride;
    if (at == end) at = begin;
    return x;
  }
};

// What T tokens' sums need of 16 blocks' activations.
template <int T>
struct LaneInputs {
  I sums[T][16];
  LaneSums xs[T];
  alignas(64) float v[T][16], d[T][16];  // fma(v[t][i], d[t][i], acc) adds block i
};

// Sixteen blocks from p on, with as many prefetched from `ahead` on.
template <typename W, int T>
INFER_SIMD void chunk(const uint8_t* p, const uint8_t* ahead, Walker& walker, LaneInputs<T>& in) {
  const typename W::Head head(p, W::kBytes);
  const typename W::Scales scales(head);
  for (int i = 0; i < 16; ++i) {
    const Activation256* x = walker.next();
    const uint8_t* block = p + W::kBytes * i;
    for (int at = 0; at < W::kBytes; at += 64) __builtin_prefetch(ahead + W::kBytes * i + at, 0, 2);
    const typename W::Block taken(block, scales, i);
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
      in.sums[t][i] = taken.sums(x[t]);
      __builtin_memcpy(in.xs[t].bytes + LaneSums::kBytes * i, W::kSub == 16 ? x[t].sum16 : x[t].sum32, 512 / W::kSub);
      in.d[t][i] = x[t].d;
    }
  }
  for (int t = 0; t < T; ++t) {
    const I total = i_sum_each(in.sums[t]);
    if constexpr (W::kMin) {
      const F f = f_mul(f_from_int(total), head.d);
      f_store(in.v[t], f_fnma(f_from_int(lane_minima(head, in.xs[t])), head.dmin, f));
    } else {
      f_store(in.v[t], f_mul(f_from_int(i_sub(total, lane_offset(head, in.xs[t]))), head.d));
    }
  }
}

// Tokens [0, T), of which n_tokens exist.
template <typename W, int T>
INFER_OUTLINE void streamed_tokens(const ProductArgs& a) {
  const auto* x = static_cast<const Activation256*>(a.x);
  const int64_t blocks = a.k / 256, total = (a.row_end - a.row_begin) * blocks;
  Walker walker{x, x + blocks * a.x_stride, x, a.x_stride};
  const uint8_t* p = a.weight + a.row_begin * a.row_bytes;
  const int valid = a.n_tokens < T ? static_cast<int>(a.n_tokens) : T;
  int64_t row = a.row_begin, left = blocks;  // of the row
  float acc[T] = {};
  LaneInputs<T> in;
  alignas(64) uint8_t copy[16 * W::kBytes + 64];
  for (int64_t first = 0; first < total; first += 16, p += 16 * W::kBytes) {
    const uint8_t* ahead = in_stream(a, p + kStreamDistance);
    const int count = total - first < 16 ? static_cast<int>(total - first) : 16;
    if (count == 16) {
      chunk<W, T>(p, ahead, walker, in);
    } else {
      __builtin_memset(copy, 0, sizeof(copy));
      __builtin_memcpy(copy, p, static_cast<size_t>(count) * W::kBytes);
      chunk<W, T>(copy, ahead, walker, in);
    }
    for (int i = 0; i < count; ++i) {
      for (int t = 0; t < T; ++t) acc[t] = __builtin_fmaf(in.v[t][i], in.d[t][i], acc[t]);
      if (--left == 0) {
        for (int t = 0; t < valid; ++t) a.out[t][row] = acc[t];
        for (int t = 0; t < T; ++t) acc[t] = 0;
        ++row;
        left = blocks;
      }
    }
  }
}

// Reads weights in order where that is better: with kFrom to kTo tokens, at most 4.
template <typename W, int kFrom, int kTo>
void product_streamed(const ProductArgs& a) {
  if (a.n_tokens < kFrom || a.n_tokens > kTo) return product_super<W>(a);
  if constexpr (kFrom <= 1) {
    if (a.n_tokens == 1) return streamed_tokens<W, 1>(a);
  }
  if constexpr (kTo >= 2) {
    if (a.n_tokens == 2) return streamed_tokens<W, 2>(a);
  }
  if constexpr (kTo > 2) streamed_tokens<W, 4>(a);
}
