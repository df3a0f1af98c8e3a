// Matmul kernels for the formats of expand.h. They are compiled once and call the format's expand_blocks().
//
// With up to 4 tokens, blocks are expanded in memory order and multiplied as in gemm_in_order.h: lanes are groups of
// four values, then blocks, then rows. With more, lanes are rows as in gemm.h. Same bits: integers are exact, and the
// blocks of a row are added in ascending order. Included inside an anonymous namespace after gemm_in_order.h.

struct Expander {
  ExpandKernel expand;
  float unit;
};

// The products of sixteen expanded blocks with those of T tokens: x[i] points to the blocks of the tokens for block i.
// values[t * value_stride + i] is to be multiplied by d of the activations and added.
template <int T>
INFER_SIMD void expanded_chunk(const ExpandedBlocks& w, float unit, const Activation256* const* x, float* values,
                               int64_t value_stride) {
  I quarters[T][4];
#pragma GCC unroll 1
  for (int g = 0; g < 4; ++g) {
    I sums[T][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const int i = 4 * g + j;
      const I f0 = i_spread_eight(w.scales[i]), f1 = i_spread_eight(w.scales[i] + 8);
      I codes[4];
      for (int h = 0; h < 4; ++h) codes[h] = i_load(w.codes[i] + 64 * h);
#pragma GCC unroll 4
      for (int t = 0; t < T; ++t) {
        const int8_t* q = x[i][t].q;
        const auto dot = [&](int h) INFER_LAMBDA { return i_dot_small(i_zero(), codes[h], i_load(q + 64 * h)); };
        // Sums of four products fit in 16 bits.
        sums[t][j] = i_madd16(i_madd16(i_zero(), i_pack16(dot(0), dot(1)), f0), i_pack16(dot(2), dot(3)), f1);
      }
    }
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) quarters[t][g] = i_sum_four(sums[t]);
  }
  const F d = f_mul(f_load_f16(w.d), f_set1(unit));
#pragma GCC unroll 4
  for (int t = 0; t < T; ++t) {
    f_store(values + t * value_stride, f_mul(f_from_int(i_sum_quarters(quarters[t])), d));
  }
}

// At most T tokens; GEMV where T is 1.
template <int T>
INFER_OUTLINE void few_expanded(const MatmulArgs& a, const Expander& e) {
  static_assert(T <= kMostInOrderTokens);
  const auto* x = static_cast<const Activation256*>(a.x);
  const int64_t blocks = a.k / 256, bytes = a.row_bytes / blocks, value_stride = 16 * blocks + 16;
  float* values = a.scratch;  // [T][value_stride]
  ExpandedBlocks expanded = {};
  for (int64_t row = a.row_begin; row < a.row_end; row += 16) {
    const int rows = a.row_end - row < 16 ? static_cast<int>(a.row_end - row) : 16;
    const uint8_t* p = a.weight + row * a.row_bytes;
    for (int64_t c = 0, at = 0; c < rows * blocks; c += 16, p += 16 * bytes) {
      const Activation256* chunk[16];
      for (int i = 0; i < 16; ++i) {
        chunk[i] = x + at * a.x_stride;
        if (++at == blocks) at = 0;
      }
      const uint8_t* ahead = in_stream(a, p + kStreamDistance);
      for (int64_t line = 0; line < 16 * bytes; line += 64) __builtin_prefetch(ahead + line, 0, 2);
      const int64_t left = rows * blocks - c;
      e.expand(p, static_cast<size_t>(bytes), left < 16 ? static_cast<int>(left) : 16, expanded);
      expanded_chunk<T>(expanded, e.unit, chunk, values + c, value_stride);
    }
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
      const F sum = sum_of_values(values + t * value_stride, blocks, x + t, a.x_stride);
      if (t < a.n_tokens) f_store_first(a.out[t] + row, sum, rows);
    }
  }
}

// Sixteen rows of expanded blocks as a format of formats.h. Where products are added in pairs, codes are made unsigned.
struct Expanded {
  static constexpr int kBytes = sizeof(ExpandedBlocks), kSub = 16;
  static constexpr bool kMin = false, kSigned = !kPairSums, kNarrow = false;
  static constexpr int kOffset = kPairSums ? 64 : kSignedOffset, kBits = kPairSums ? 7 : 8;
  struct Head {
    F d;
    I scales[4];
    INFER_SIMD Head(const uint8_t* p, size_t) {
      const auto& blocks = *reinterpret_cast<const ExpandedBlocks*>(p);
      d = f_load_f16(blocks.d);
      i_transpose(blocks.scales[0], 16, scales);
    }
    template <int S>
    INFER_SIMD I scale() const {
      return i_and(i_shr<8 * (S % 4)>(scales[S / 4]), i_set1(255));
    }
  };
  // c + 64 for -64 <= c < 64, per byte.
  static INFER_SIMD I prepare(I codes) {
    if constexpr (kPairSums) return i_and(i_xor(codes, byte_mask(64)), byte_mask(127));
    else return i_prepare_s8(codes);
  }
  template <int S = 0, typename Sink>
  static INFER_SIMD void unpack(const uint8_t* p, size_t stride, const Sink& sink) {
    if constexpr (S < 16) {
      I codes[4];
      i_transpose(p + 16 * S, 256, codes);
      for (int i = 0; i < 4; ++i) codes[i] = prepare(codes[i]);
      sink.template operator()<S>(codes);
      unpack<S + 1>(p, stride, sink);
    }
  }
};

struct ExpandedMany : SuperMany<Expanded> {
  static constexpr int kCopyBytes = sizeof(ExpandedBlocks);
  Expander expander;
  int64_t bytes;  // of a block

  int64_t block_bytes() const { return bytes; }
  INFER_SIMD void fill_group(const RowGroup& g, int64_t block, int, Panel& panel, uint8_t* copy) const {
    auto& blocks = *reinterpret_cast<ExpandedBlocks*>(copy);
    expander.expand(g.base + block * bytes, g.stride, g.count, blocks);
    fill_panel(copy, 0, panel);
    panel.d = f_mul(panel.d, f_set1(expander.unit));
  }
};

INFER_OUTLINE void many_expanded(const MatmulArgs& a, const Expander& e) {
  gemm_groups(a, ExpandedMany{{}, e, a.row_bytes / (a.k / 256)});
}

template <typename W, int T>
void few_expanded_of(const MatmulArgs& a) {
  few_expanded<T>(a, {expand_blocks<W>, W::kUnit});
}
template <typename W>
void many_expanded_of(const MatmulArgs& a) {
  many_expanded(a, {expand_blocks<W>, W::kUnit});
}
