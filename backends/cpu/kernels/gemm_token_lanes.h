// GEMM with super-block weights and 5 to 8 tokens: lanes are 8 tokens by 2 groups of four consecutive values. Eight
// bytes of a row are repeated and multiplied by the same eight values of all tokens. So codes are used in memory order,
// without the transposition that kernels with rows as lanes need; only the integer sums of 16 rows are transposed. Same
// bits as gemm_few.h: integers are exact, and the blocks of a row are added in ascending order.
// Included inside an anonymous namespace after gemm_in_order.h.
//
// A format has, in addition to the members listed in formats.h,
//   kStart: the offset that is subtracted from codes, so that sums of half a sub-block fit in 16 bits
//   kBufferBytes, expand(p, buffer): the form of the block at p that codes() reads; 0: the block itself
//   kShift, codes<J>(form, c, a, b): eight codes from 8 c on of sub-blocks 2 J and 2 J + 1, b times 2^(16 - kShift)
//   scale_pair<J>(head): their scales as 16-bit pairs

struct LanesQ4K : Q4K {
  static constexpr int kStart = 0, kBufferBytes = 0, kShift = 12;
  static INFER_SIMD const uint8_t* expand(const uint8_t* p, uint8_t*) { return p; }
  template <int J>
  static INFER_SIMD void codes(const uint8_t* p, int c, I& a, I& b) {
    I q = i_repeat8(p + 16 + 32 * J + 8 * c);
    keep_in_register(q);
    a = i_and(q, byte_mask(15)), b = i_and(q, byte_mask(0xf0));
  }
  template <int J>
  static INFER_SIMD I scale_pair(const HeadQ4K& head) {
    return head.scale_pair<J>();
  }
};

// The two parts of a code are far apart in the block; expand() joins them as gemm_in_order.h does.
struct LanesQ6K : OneQ6K {
  static constexpr int kStart = 32, kBufferBytes = 256, kShift = 16;
  static INFER_SIMD const uint8_t* expand(const uint8_t* p, uint8_t* buffer) {
    I codes[4];
    take(p, codes);
    for (int i = 0; i < 4; ++i) i_store(buffer + 64 * i, codes[i]);
    return buffer;
  }
  template <int J>
  static INFER_SIMD void codes(const uint8_t* p, int c, I& a, I& b) {
    a = i_repeat8(p + 32 * J + 8 * c), b = i_repeat8(p + 32 * J + 16 + 8 * c);
  }
  template <int J>
  static INFER_SIMD I scale_pair(const Q6K::Head& head) {
    if constexpr (J % 2 == 0) return i_widen_upper(i_bytes<-1, 0, -1, 1>(head.scales[J / 2]));
    else return i_widen_upper(i_bytes<-1, 2, -1, 3>(head.scales[J / 2]));
  }
};

// The activations arranged in lanes, in the scratch memory of a call. Missing tokens repeat the last one.
template <typename W>
struct LaneInputs {
  static constexpr int kSubs = 256 / W::kSub;
  int64_t blocks;
  int8_t* codes;  // [blocks][32][64]
  I* starts;      // [blocks][kSubs]: -kStart times the sums of activations

  INFER_SIMD LaneInputs(const MatmulArgs& a, const Activation256* const* tokens) : blocks(a.k / 256) {
    codes = reinterpret_cast<int8_t*>(a.scratch);
    starts = reinterpret_cast<I*>(codes + blocks * 256 * kLaneTokens);
    for (int64_t b = 0; b < blocks; ++b) {
      for (int q = 0; q < 4; ++q) {
        I parts[kLaneTokens];
        for (int t = 0; t < kLaneTokens; ++t) parts[t] = i_load(tokens[t][b * a.x_stride].q + 64 * q);
        i_interleave(parts);
        for (int t = 0; t < kLaneTokens; ++t) i_store(codes_of(b) + (q * kLaneTokens + t) * 64, parts[t]);
      }
      if constexpr (W::kStart != 0) {
        const int8_t* from = codes_of(b);
        for (int s = 0; s < kSubs; ++s) {
          I sum = i_zero();
          for (int c = 0; c < W::kSub / 8; ++c, from += 64) sum = i_dot_u8(sum, byte_mask(W::kStart), i_load(from));
          starts[b * kSubs + s] = i_sub(i_zero(), sum);
        }
      }
    }
  }
  int8_t* codes_of(int64_t block) const { return codes + block * 256 * kLaneTokens; }
};

// Multiplies four rows by the block of activations at x and adds to `sums`, from sub-blocks 2 J and 2 J + 1 on. `forms`
// is what codes() reads; pairs[16 J + row] has the scales. Prefetches as many bytes from `ahead` on, unless it is null.
template <typename W, int J = 0>
INFER_SIMD void lane_sums(const uint8_t* const* forms, const int8_t* x, const I* starts, const int32_t* pairs,
                          const uint8_t* ahead, I* sums) {
  if constexpr (J < 128 / W::kSub) {
    if (ahead) prefetch_part<J, 128 / W::kSub, 4 * W::kBytes>(ahead);
    constexpr int kChunks = W::kSub / 8;
    I a[4], b[4];
    for (int r = 0; r < 4; ++r) {
      a[r] = W::kStart ? starts[2 * J] : i_zero();
      b[r] = W::kStart ? starts[2 * J + 1] : i_zero();
    }
#pragma GCC unroll 4
    for (int c = 0; c < kChunks; ++c) {
      I xa = i_load(x + 64 * (2 * kChunks * J + c)), xb = i_load(x + 64 * (2 * kChunks * J + kChunks + c));
      keep_in_register(xa), keep_in_register(xb);
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        I wa, wb;
        W::template codes<J>(forms[r], c, wa, wb);
        a[r] = i_dot_u8(a[r], wa, xa);
        b[r] = i_dot_u8(b[r], wb, xb);
      }
    }
    // One multiply-add scales both sums: each fits in 16 bits, once the factor 2^(16 - kShift) of b's codes is removed.
    for (int r = 0; r < 4; ++r) {
      sums[r] = i_madd16(sums[r], i_join16(a[r], i_shl<W::kShift>(b[r])), i_set1(pairs[16 * J + r]));
    }
    lane_sums<W, J + 1>(forms, x, starts, pairs, ahead, sums);
  }
}
template <typename W, typename Head, int J = 0>
INFER_SIMD void store_scale_pairs(const Head& head, int32_t (*pairs)[16]) {
  if constexpr (J < 128 / W::kSub) {
    i_store(pairs[J], W::template scale_pair<J>(head));
    store_scale_pairs<W, Head, J + 1>(head, pairs);
  }
}

// Multiplies one super-block of 16 rows by 8 tokens and adds to acc, whose lanes are rows.
template <typename W>
INFER_SIMD void add_lanes(const uint8_t* p, size_t stride, const int8_t* x, const I* starts,
                          const Activation256* const* tokens, const uint8_t* ahead, F* acc) {
  const typename W::Head head(p, stride);
  alignas(64) int32_t pairs[128 / W::kSub][16];
  alignas(64) uint8_t buffer[4][W::kBufferBytes ? W::kBufferBytes : 64];
  store_scale_pairs<W>(head, pairs);
  I sums[16];
  for (int first = 0; first < 16; first += 4) {
    const uint8_t* forms[4];
    I four[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      forms[r] = W::expand(p + (first + r) * stride, buffer[r]);
      four[r] = i_zero();
    }
    // Keeps the compiler from holding activations in registers across iterations (there are more of them than
    // registers) and from extracting expanded codes from registers instead of reading them from memory.
    asm volatile("" : "+r"(x), "+r"(starts) : : "memory");
    lane_sums<W>(forms, x, starts, &pairs[0][first], ahead ? ahead + first * W::kBytes : nullptr, four);
    for (int r = 0; r < 4; ++r) sums[first + r] = four[r];
  }
  i_sum_pairs(sums);
  i_interleave(sums);
  for (int t = 0; t < kLaneTokens; ++t) acc[t] = finish_super<W>(head, *tokens[t], sums[t], acc[t]);
}

template <typename W>
INFER_OUTLINE void gemm_token_lanes(const MatmulArgs& a) {
  const Activation256 *first[kLaneTokens], *tokens[kLaneTokens];
  for (int t = 0; t < kLaneTokens; ++t) {
    first[t] = static_cast<const Activation256*>(a.x) + (t < a.n_tokens ? t : a.n_tokens - 1);
  }
  const LaneInputs<W> in(a, first);
  alignas(64) uint8_t copy[16 * W::kBytes + 64];
  for (int64_t row = a.row_begin; row < a.row_end; row += 16) {
    const RowGroup g = row_group(a, row);
    F acc[kLaneTokens];
    for (int t = 0; t < kLaneTokens; ++t) acc[t] = f_zero(), tokens[t] = first[t];
    for (int64_t b = 0; b < in.blocks; ++b) {
      const uint8_t *p = g.base + b * W::kBytes, *ahead = nullptr;
      size_t stride = g.stride;
      if (g.count < 16) {
        copy_rows<W::kBytes>(g, b * W::kBytes, copy);
        p = copy, stride = W::kBytes;
      } else {
        ahead = in_stream(a, g.base + kPrefetchDistance + b * 16 * W::kBytes);
      }
      add_lanes<W>(p, stride, in.codes_of(b), in.starts + b * in.kSubs, tokens, ahead, acc);
      for (int t = 0; t < kLaneTokens; ++t) tokens[t] += a.x_stride;
    }
    for (int t = 0; t < a.n_tokens; ++t) f_store_first(a.out[t] + row, acc[t], g.count);
  }
}
