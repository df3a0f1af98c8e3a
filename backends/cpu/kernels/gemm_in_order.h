// GEMV and GEMM with up to 4 tokens for super-block weights, limited by memory bandwidth: weights are read in memory
// order, block after block and row after row, which the hardware prefetcher can follow. Lanes are 16 groups of four
// consecutive values of a block. The sums of sixteen blocks are transposed so that lanes are blocks, and those of
// sixteen rows so that lanes are rows. Same bits as gemm_few.h: integers are exact, and the blocks of a row are added
// in ascending order. Included inside an anonymous namespace after quantized.h.
//
// A format has
//   kPairs: int16 pairs of sums of activations in a block, 8 or 4 (see offset_part)
//   kOrder[i]: which 32 activations are stored in place i, to match the codes of take()
//   Scales(head): the scales of 16 blocks, for access one by one
//   take(p, codes): the codes of the block at p, 64 values each
//   factors<H>(p, scales, i): the factors of the sums of codes[2 H] and codes[2 H + 1], in the order of i_pack16

constexpr int64_t kStreamDistance = 16384;  // bytes prefetched ahead

struct ScalesQ4K {
  alignas(64) int32_t both[16][2];  // four bytes each: sub-blocks 0..3 and 4..7 of a block
  INFER_SIMD explicit ScalesQ4K(const HeadQ4K& head) { i_store_pairs(both, head.low, head.high); }
};

struct OneQ4K : Q4K {
  using Scales = ScalesQ4K;
  static constexpr int kPairs = 4;
  static constexpr int kOrder[8] = {0, 2, 1, 3, 4, 6, 5, 7};
  // 32 bytes hold sub-blocks 2 J and 2 J + 1, as low and as high nibbles.
  static INFER_SIMD void take(const uint8_t* p, I* codes) {
    const I m4 = byte_mask(15);
    for (int h = 0; h < 2; ++h) {
      I q = i_load(p + 16 + 64 * h);
      keep_in_register(q);  // not loaded twice: it crosses cache lines
      codes[2 * h] = i_and(q, m4), codes[2 * h + 1] = shift_mask<4>(q, m4);
    }
  }
  template <int H>
  static INFER_SIMD I factors(const uint8_t*, const Scales& scales, int i) {
    return i_spread_four(scales.both[i][H]);
  }
};

struct OneQ5K : Q5K {
  using Scales = ScalesQ4K;
  static constexpr int kPairs = 4;
  static constexpr int kOrder[8] = {0, 2, 1, 3, 4, 6, 5, 7};
  static INFER_SIMD void take(const uint8_t* p, I* codes) {
    // Bit s of byte i of the 32 is the fifth bit of value i of sub-block s. Sub-blocks 0 and 2 are taken together, then
    // 1 and 3, ...
    const I m4 = byte_mask(15), m1 = byte_mask(16), high = i_shr_second<2>(i_load_twice(p + 16));
    I a = i_load(p + 48), b = i_load(p + 112);
    keep_in_register(a), keep_in_register(b);
    codes[0] = i_or(i_and(a, m4), i_and(i_shl<4>(high), m1));
    codes[1] = i_or(shift_mask<4>(a, m4), i_and(i_shl<3>(high), m1));
    codes[2] = i_or(i_and(b, m4), i_and(high, m1));
    codes[3] = i_or(shift_mask<4>(b, m4), i_and(i_shr<1>(high), m1));
  }
  template <int H>
  static INFER_SIMD I factors(const uint8_t*, const Scales& scales, int i) {
    return i_spread_four(scales.both[i][H]);
  }
};

struct OneQ6K : Q6K {
  struct Scales {
    INFER_SIMD explicit Scales(const Head&) {}
  };
  static constexpr int kPairs = 8;
  static constexpr int kOrder[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  static INFER_SIMD void take(const uint8_t* p, I* codes) {
    const I m4 = byte_mask(15), m2 = byte_mask(0x30);
    for (int h = 0; h < 2; ++h) {
      I q = i_load(p + 64 * h);
      keep_in_register(q);
      const I high = i_shr_second<2>(i_load_twice(p + 128 + 32 * h));
      codes[2 * h] = i_or(i_and(q, m4), i_and(i_shl<4>(high), m2));
      codes[2 * h + 1] = i_or(shift_mask<4>(q, m4), i_and(high, m2));
    }
  }
  template <int H>
  static INFER_SIMD I factors(const uint8_t* p, const Scales&, int) {
    return i_spread_eight(p + 192 + 8 * H);
  }
};

// The sums of the activations of 16 blocks: sum32, or sum16 where sub-blocks have 16 values. Lane i of pairs[j] has
// sums 2 j and 2 j + 1 of block i.
INFER_SIMD void load_pairs(const Activation256* const* x, bool of16, I* pairs) {
  alignas(64) uint8_t bytes[16 * 32];
  for (int i = 0; i < 16; ++i) __builtin_memcpy(bytes + 32 * i, of16 ? x[i]->sum16 : x[i]->sum32, of16 ? 32 : 16);
  i_transpose(bytes, 32, pairs);
  if (of16) i_transpose(bytes + 16, 32, pairs + 4);
}

// sum over sub-blocks of minimum * sum of activations, for 16 blocks.
INFER_SIMD I offset_part(const HeadQ4K& head, const I* pairs) {
  const I acc = i_madd16(i_madd16(i_zero(), head.mins<0>(), pairs[0]), head.mins<1>(), pairs[1]);
  return i_madd16(i_madd16(acc, head.mins<2>(), pairs[2]), head.mins<3>(), pairs[3]);
}

// 32 * sum over sub-blocks of scale * sum of activations. The scales are in the upper bytes of int16 pairs, which makes
// them 256 times as large; the sum still fits in 32 bits.
INFER_SIMD I offset_part(const Q6K::Head& head, const I* pairs) {
  I acc = i_zero();
  for (int i = 0; i < 4; ++i) {
    acc = i_madd16(acc, i_bytes<-1, 0, -1, 1>(head.scales[i]), pairs[2 * i]);
    acc = i_madd16(acc, i_bytes<-1, 2, -1, 3>(head.scales[i]), pairs[2 * i + 1]);
  }
  return i_sar<3>(acc);
}

// The activations of T tokens in the order of take(), and the other inputs of 16 blocks, in the scratch memory of a
// call. Blocks are numbered across rows and taken sixteen at a time; the activations repeat after `phases` sixteens.
template <typename W, int T>
struct StreamInputs {
  int64_t blocks, phases;
  I* pairs;       // [phases][T][kPairs]
  float* values;  // [T][16 blocks + 16]: per block of 16 rows, to be multiplied by d of the activations and added
  int8_t* codes;  // [blocks][T][256]

  INFER_SIMD StreamInputs(const MatmulArgs& a, const Activation256* x)
      : blocks(a.k / 256), phases(in_order_phases(blocks)) {
    pairs = reinterpret_cast<I*>(a.scratch);
    values = reinterpret_cast<float*>(pairs + phases * T * W::kPairs);
    codes = reinterpret_cast<int8_t*>(values + T * value_stride());
    for (int64_t b = 0; b < blocks; ++b) {
      for (int t = 0; t < T; ++t) {
        const int8_t* q = x[b * a.x_stride + t].q;
        for (int i = 0; i < 8; ++i) __builtin_memcpy(codes + (b * T + t) * 256 + 32 * i, q + 32 * W::kOrder[i], 32);
      }
    }
    for (int64_t i = 0; i < phases; ++i) {
      for (int t = 0; t < T; ++t) {
        const Activation256* chunk[16];
        for (int j = 0; j < 16; ++j) chunk[j] = x + (16 * i + j) % blocks * a.x_stride + t;
        load_pairs(chunk, W::kSub == 16, pairs + (i * T + t) * W::kPairs);
      }
    }
  }
  int64_t value_stride() const { return 16 * blocks + 16; }
};

// Multiplies the sixteen blocks from p on by the activations from `x` on, which it advances, and prefetches as many
// blocks from `ahead` on.
template <typename W, int T>
INFER_SIMD void stream_chunk(const uint8_t* p, const uint8_t* ahead, const StreamInputs<W, T>& in, const I* pairs,
                             const int8_t*& x, float* values) {
  const typename W::Head head(p, W::kBytes);
  const typename W::Scales scales(head);
  const int8_t* end = in.codes + in.blocks * T * 256;
  I quarters[T][4];
  for (int g = 0; g < 4; ++g) {
    I sums[T][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const int i = 4 * g + j;
      const uint8_t* block = p + i * W::kBytes;
      for (int at = 0; at < W::kBytes; at += 64) __builtin_prefetch(ahead + i * W::kBytes + at, 0, 2);
      I codes[4];
      W::take(block, codes);
      const I f0 = W::template factors<0>(block, scales, i), f1 = W::template factors<1>(block, scales, i);
#pragma GCC unroll 4
      for (int t = 0; t < T; ++t, x += 256) {
        // Sums of four products fit in 16 bits, so one multiply-add scales those of two vectors.
        const I low = i_pack16(i_dot_u8(i_zero(), codes[0], i_load(x)), i_dot_u8(i_zero(), codes[1], i_load(x + 64)));
        const I high =
            i_pack16(i_dot_u8(i_zero(), codes[2], i_load(x + 128)), i_dot_u8(i_zero(), codes[3], i_load(x + 192)));
        sums[t][j] = i_madd16(i_madd16(i_zero(), low, f0), high, f1);
      }
      if (x == end) x = in.codes;
    }
    for (int t = 0; t < T; ++t) quarters[t][g] = i_sum_four(sums[t]);
  }
  for (int t = 0; t < T; ++t) {
    const I total = i_sum_quarters(quarters[t]), offset = offset_part(head, pairs + t * W::kPairs);
    F v;
    if constexpr (W::kMin) v = f_fnma(f_from_int(offset), head.dmin, f_mul(f_from_int(total), head.d));
    else v = f_mul(f_from_int(i_sub(total, offset)), head.d);
    f_store(values + t * in.value_stride(), v);
  }
}

// The results of 16 rows: values[row][blocks] times d of the activations x, added in ascending order of the blocks.
template <typename Activation>
INFER_SIMD F sum_of_values(const float* values, int64_t blocks, const Activation* x, int64_t x_stride) {
  F acc = f_zero();
  for (int64_t b = 0; b < blocks; b += 4) {
    I columns[4];
    i_transpose(reinterpret_cast<const uint8_t*>(values + b), static_cast<size_t>(4 * blocks), columns);
    for (int64_t i = 0; i < 4 && b + i < blocks; ++i) {
      acc = f_fma(f_from_bits(columns[i]), f_set1(x[(b + i) * x_stride].d), acc);
    }
  }
  return acc;
}

// At most T tokens; GEMV where T is 1.
template <typename W, int T>
INFER_OUTLINE void gemm_in_order(const MatmulArgs& a) {
  static_assert(T <= kMostInOrderTokens);
  const auto* x = static_cast<const Activation256*>(a.x);
  const StreamInputs<W, T> in(a, x);
  alignas(64) uint8_t copy[16 * W::kBytes + 64];
  for (int64_t row = a.row_begin; row < a.row_end; row += 16) {
    const int rows = a.row_end - row < 16 ? static_cast<int>(a.row_end - row) : 16;
    const uint8_t* p = a.weight + row * a.row_bytes;
    const int8_t* codes = in.codes;
    for (int64_t c = 0; 16 * c < rows * in.blocks; ++c, p += 16 * W::kBytes) {
      const uint8_t* from = p;
      if (const int64_t left = rows * in.blocks - 16 * c; left < 16) {
        __builtin_memset(copy, 0, sizeof(copy));
        __builtin_memcpy(copy, p, static_cast<size_t>(left) * W::kBytes);
        from = copy;
      }
      stream_chunk<W, T>(from, in_stream(a, p + kStreamDistance), in, in.pairs + c % in.phases * T * W::kPairs, codes,
                         in.values + 16 * c);
    }
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
      const F sum = sum_of_values(in.values + t * in.value_stride(), in.blocks, x + t, a.x_stride);
      if (t < a.n_tokens) f_store_first(a.out[t] + row, sum, rows);
    }
  }
}

// ---- Q8_0, one or two tokens: blocks of 32 in memory order, two in a vector ----

// The operands of chunks of sixteen blocks, in the scratch memory of a call. Chunks are numbered across rows;
// the inputs repeat after `phases`.
template <int T>
struct InputsQ80 {
  int64_t blocks, phases;
  int8_t* codes;     // [phases][T][8][2][32]: vector 4 h + j is for the blocks 8 h + j and 8 h + j + 4 of the chunk
  int32_t* offsets;  // [phases][T][16]
  float* values;     // [T][16 blocks + 16]: per block of 16 rows, to be multiplied by d of the activations and added

  INFER_SIMD InputsQ80(const MatmulArgs& a, const Activation32* x) : blocks(a.k / 32), phases(in_order_phases(blocks)) {
    codes = reinterpret_cast<int8_t*>(a.scratch);
    offsets = reinterpret_cast<int32_t*>(codes + phases * T * 512);
    values = reinterpret_cast<float*>(offsets + phases * T * 16);
    for (int64_t p = 0; p < phases; ++p) {
      for (int t = 0; t < T; ++t) {
        for (int i = 0; i < 16; ++i) {
          const Activation32& block = x[(16 * p + i) % blocks * a.x_stride + t];
          const int place = i / 8 * 8 + i % 4 * 2 + i / 4 % 2;
          __builtin_memcpy(codes + (p * T + t) * 512 + place * 32, block.q, 32);
          offsets[(p * T + t) * 16 + i] = kSignedOffset * block.sum32;
        }
      }
    }
  }
  int64_t value_stride() const { return 16 * blocks + 16; }
};

// Multiplies the sixteen blocks from p on by those of each token at `x`.
template <int T>
INFER_SIMD void chunk_q80(const uint8_t* p, const int8_t* x, const int32_t* offsets, float* values, int64_t stride) {
  constexpr int kBytes = Q80::kBytes;
  I fours[T][2];
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
    I sums[T][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const int i = 8 * h + j;
      const I w = i_prepare_s8(i_load_two(p + i * kBytes + 2, p + (i + 4) * kBytes + 2));
#pragma GCC unroll 2
      for (int t = 0; t < T; ++t) sums[t][j] = i_dot_s8(i_zero(), w, i_load(x + 512 * t + 64 * (4 * h + j)));
    }
#pragma GCC unroll 2
    for (int t = 0; t < T; ++t) fours[t][h] = i_sum_four(sums[t]);
  }
  const F d = f_from_f16_lanes(gather16(p, kBytes));
#pragma GCC unroll 2
  for (int t = 0; t < T; ++t) {
    const I sum = i_sub(i_sum_halves(fours[t][0], fours[t][1]), i_load(offsets + 16 * t));
    f_store(values + t * stride, f_mul(f_from_int(sum), d));
  }
}

// At most T tokens; GEMV where T is 1.
template <int T>
INFER_OUTLINE void gemm_in_order_q80(const MatmulArgs& a) {
  constexpr int kBytes = Q80::kBytes;
  const auto* x = static_cast<const Activation32*>(a.x);
  const InputsQ80<T> in(a, x);
  alignas(64) uint8_t copy[16 * kBytes + 64];
  for (int64_t row = a.row_begin; row < a.row_end; row += 16) {
    const int rows = a.row_end - row < 16 ? static_cast<int>(a.row_end - row) : 16;
    const uint8_t* p = a.weight + row * a.row_bytes;
    for (int64_t c = 0, phase = 0; 16 * c < rows * in.blocks; ++c, p += 16 * kBytes) {
      const uint8_t* from = p;
      if (const int64_t left = rows * in.blocks - 16 * c; left < 16) {
        __builtin_memset(copy, 0, sizeof(copy));
        __builtin_memcpy(copy, p, static_cast<size_t>(left) * kBytes);
        from = copy;
      }
      const uint8_t* ahead = in_stream(a, p + kStreamDistance);
      for (int at = 0; at < 16 * kBytes; at += 64) __builtin_prefetch(ahead + at, 0, 2);
      chunk_q80<T>(from, in.codes + phase * T * 512, in.offsets + phase * T * 16, in.values + 16 * c,
                   in.value_stride());
      if (++phase == in.phases) phase = 0;
    }
#pragma GCC unroll 2
    for (int t = 0; t < T; ++t) {
      const F sum = sum_of_values(in.values + t * in.value_stride(), in.blocks, x + t, a.x_stride);
      if (t < a.n_tokens) f_store_first(a.out[t] + row, sum, rows);
    }
  }
}
