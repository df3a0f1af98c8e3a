// Shared by the matmul kernels for quantized weights. The lanes of a vector are 16 weight rows, so each (row, token)
// result is one lane that adds its super-blocks in ascending order, whatever the tile; kernels that use lanes in
// another way keep that order. Included inside an anonymous namespace after formats.h.

// Formats of 256 values have a head with the scales of their sub-blocks; those of 32 have one scale.
template <typename W>
constexpr bool kIsSuper = requires {
  typename W::Head;
};

// Formats with Activation32 whose blocks are made of several blocks of 32, and those with a scale for each half of 32.
template <typename W>
constexpr int parts_of() {
  if constexpr (requires { W::kParts; }) return W::kParts;
  else return 1;
}
template <typename W>
constexpr int scales_of() {
  if constexpr (requires { W::kScales; }) return W::kScales;
  else return 1;
}
template <typename W>
constexpr int kParts = parts_of<W>();
template <typename W>
constexpr int kScales = scales_of<W>();  // of 32 values

// The codes, scales and minimum of 32 values.
template <typename W>
INFER_SIMD void unpack_block(const uint8_t* p, size_t stride, int part, I* w, F* d, F& m) {
  if constexpr (kParts<W> == 1) W::block(p, stride, w, *d, m);
  else W::block(p, stride, part, w, d);
}

// The sum of the activations that share scale s.
template <typename W>
INFER_SIMD int32_t sum_of(const Activation32& x, int s) {
  return kScales<W> == 1 ? x.sum32 : x.sum16[s];
}

INFER_SIMD int32_t load_int(const void* p) {
  int32_t x;
  __builtin_memcpy(&x, p, 4);
  return x;
}

// -offset * (sum of the 16 or 32 activations of sub-block S), in every lane.
template <int kSub, int kOffset, int S>
INFER_SIMD I offset_of(const Activation256& x) {
  if constexpr (kOffset == 0) {
    return i_zero();
  } else {
    const int16_t* sums = kSub == 16 ? x.sum16 : x.sum32;
    return i_madd16(i_zero(), i_set1(load_int(sums + S / 2 * 2)),
                    i_set1(S % 2 == 0 ? (-kOffset & 0xffff) : -kOffset * 65536));
  }
}

template <typename W>
INFER_SIMD I dot4(I acc, I w, I x) {
  if constexpr (W::kSigned) return i_dot_s8(acc, w, x);
  else return i_dot_u8(acc, w, x);
}

// What the minima contribute to a super-block: the sum over s of m_s * (sum of the activations of s).
template <typename W, typename Head, int P = 0>
INFER_SIMD I minima(const Head& head, const Activation256& x, I acc) {
  if constexpr (P == 128 / W::kSub) {
    return acc;
  } else {
    const int16_t* sums = W::kSub == 16 ? x.sum16 : x.sum32;
    return minima<W, Head, P + 1>(head, x, i_madd16(acc, head.template mins<P>(), i_set1(load_int(sums + 2 * P))));
  }
}

template <typename W, typename Head>
INFER_SIMD F finish_super(const Head& head, const Activation256& x, I isum, F acc) {
  F v = f_mul(f_from_int(isum), head.d);
  if constexpr (W::kMin) v = f_fnma(f_from_int(minima<W>(head, x, i_zero())), head.dmin, v);
  return f_fma(v, f_set1(x.d), acc);
}

// The 16 rows from `row` on, of which `count` exist. A last group that is not full is copied block by block and its
// last row is repeated, so that kernels always see 16 rows.
struct RowGroup {
  const uint8_t* base;
  size_t stride;
  int count;
};
INFER_SIMD RowGroup row_group(const MatmulArgs& a, int64_t row) {
  const int64_t left = a.row_end - row;
  return {a.weight + row * a.row_bytes, static_cast<size_t>(a.row_bytes), left < 16 ? static_cast<int>(left) : 16};
}
template <int kBytes>
INFER_SIMD void copy_rows(const RowGroup& g, int64_t offset, uint8_t* to) {
  for (int i = 0; i < 16; ++i) {
    __builtin_memcpy(to + i * kBytes, g.base + (i < g.count ? i : g.count - 1) * g.stride + offset, kBytes);
  }
}
