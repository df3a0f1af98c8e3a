// GEMV and GEMM with few tokens for quantized weights: the codes of 16 rows are unpacked in registers and used at once,
// for all tokens. Included inside an anonymous namespace after quantized.h.

// Multiplies one super-block of 16 rows by T tokens and adds to acc. Prefetches as many bytes from `ahead`, unless
// null.
template <typename W, int T>
struct SuperSink {
  const Activation256* x;
  const typename W::Head& head;
  const uint8_t* ahead;
  I* sum;
  template <int S>
  INFER_SIMD void operator()(const I* w) const {
    if (ahead) prefetch_part<S, 256 / W::kSub, 16 * W::kBytes>(ahead);
    const I scale = head.template scale<S>();
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      I s = offset_of<W::kSub, W::kOffset, S>(x[t]);
#pragma GCC unroll 8
      for (int c = 0; c < W::kSub / 4; ++c) s = dot4<W>(s, w[c], i_set1(load_int(x[t].q + W::kSub * S + 4 * c)));
      sum[t] = W::kNarrow ? i_madd16(sum[t], s, scale) : i_add(sum[t], i_mul(s, scale));
    }
  }
};

// The offset of Q4_K's codes was subtracted to keep sums narrow. Its formula has unsigned codes, so it is added back.
template <typename W, typename Head, int P = 0>
INFER_SIMD I restore_offset(const Head& head, const Activation256& x, I acc) {
  if constexpr (P == 4) {
    return i_shl<3>(acc);
  } else {
    return restore_offset<W, Head, P + 1>(
        head, x, i_madd16(acc, head.template scale_pair<P>(), i_set1(load_int(x.sum32 + 2 * P))));
  }
}
template <typename W>
constexpr bool kRestores = W::kMin&& W::kOffset != 0;

template <typename W, int T>
INFER_SIMD void add_super(const uint8_t* p, size_t stride, const Activation256* x, const uint8_t* ahead, F* acc) {
  const typename W::Head head(p, stride);
  I sum[T];
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    if constexpr (kRestores<W>) sum[t] = restore_offset<W>(head, x[t], i_zero());
    else sum[t] = i_zero();
  }
  W::unpack(p, stride, SuperSink<W, T>{x, head, ahead, sum});
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) acc[t] = finish_super<W>(head, x[t], sum[t], acc[t]);
}

// Multiplies one block of 32 by T tokens and adds to acc.
template <typename W, int T>
INFER_SIMD void add_small(const uint8_t* p, size_t stride, const Activation32* x, const uint8_t* ahead, F* acc) {
  if (ahead) prefetch_part<0, 1, 16 * W::kBytes>(ahead);
  I w[8];
  F d, m;
  W::block(p, stride, w, d, m);
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    I sum = W::kOffset ? i_set1(-W::kOffset * x[t].sum32) : i_zero();
#pragma GCC unroll 8
    for (int c = 0; c < 8; ++c) sum = dot4<W>(sum, w[c], i_set1(load_int(x[t].q + 4 * c)));
    F v = f_mul(f_from_int(sum), d);
    if constexpr (W::kMin) v = f_fma(f_set1(x[t].sum32), m, v);
    acc[t] = f_fma(v, f_set1(x[t].d), acc[t]);
  }
}

// What differs between formats with Activation256 and those with Activation32.
template <typename W>
struct SuperWalk {
  using Format = W;
  using Activation = Activation256;
  static constexpr int kValues = 256, kBytes = W::kBytes, kActivations = 1;  // per block
  template <int T>
  static INFER_SIMD void add(const uint8_t* p, size_t stride, const Activation* x, const uint8_t* ahead, F* acc) {
    add_super<W, T>(p, stride, x, ahead, acc);
  }
};
template <typename W>
struct SmallWalk {
  using Format = W;
  using Activation = Activation32;
  static constexpr int kValues = 32 * kParts<W>, kBytes = W::kBytes, kActivations = kParts<W>;
  template <int T>
  static INFER_SIMD void add(const uint8_t* p, size_t stride, const Activation* x, const uint8_t* ahead, F* acc) {
    add_small<W, T>(p, stride, x, ahead, acc);
  }
};

template <typename W>
using WalkOf = std::conditional_t<kIsSuper<W>, SuperWalk<W>, SmallWalk<W>>;

// At most T tokens; GEMV where T is 1.
template <typename W, int T>
INFER_OUTLINE void gemm_few(const MatmulArgs& a) {
  using Walk = WalkOf<W>;
  const auto* x = static_cast<const typename Walk::Activation*>(a.x);
  const int64_t blocks = a.k / Walk::kValues, step = Walk::kActivations * a.x_stride;
  // For one token, the count is a constant, so that the loops over tokens disappear.
  const int valid = T > 1 && a.n_tokens < T ? static_cast<int>(a.n_tokens) : T;
  int64_t row = a.row_begin;
  for (; row + 16 <= a.row_end; row += 16) {
    const RowGroup g = row_group(a, row);
    F acc[T];
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) acc[t] = f_zero();
    for (int64_t b = 0; b < blocks; ++b) {
      const uint8_t* ahead = in_stream(a, g.base + kPrefetchDistance + b * 16 * Walk::kBytes);
      Walk::template add<T>(g.base + b * Walk::kBytes, g.stride, x + b * step, ahead, acc);
    }
    for (int t = 0; t < valid; ++t) f_store(a.out[t] + row, acc[t]);
  }
  if (row < a.row_end) {  // rare, and not worth as much code again
    MatmulArgs rest = a;
    rest.row_begin = row;
    gemm_by_dots(rest);
  }
}
