// GEMV and GEMM with few tokens for Q1_0, Q2_0 and NVFP4: like gemm_few.h, but a block is loaded once for all its parts
// of 32 values, and codes stay in an order that shifts and masks alone can unpack. Activations are put into that order
// first. Included inside an anonymous namespace after gemm_few.h.
//
// A format has
//   kBytes, kOffset; kParts of 32 values, kScales of each
//   kOrder[i]: which of 32 values is in place i
//   Format(p, stride): one block from each of 16 rows
//   codes<P>(w): eight vectors with the codes of part P; scales<P>(d): its scales
//   sum(w, q, start): start + the dot product of the codes with one scale, from w on, and the activations from q on

struct Order32 {
  int v[32];
};
template <typename Place>
constexpr Order32 order32(Place place) {
  Order32 o{};
  for (int i = 0; i < 32; ++i) o.v[i] = place(i);
  return o;
}

// start + the dot products of N vectors of codes.
template <int N>
INFER_SIMD I small_sum(const I* w, const int8_t* q, int32_t start) {
  I sum = i_set1(start);
#pragma GCC unroll 8
  for (int c = 0; c < N; ++c) sum = i_dot_u8(sum, w[c], i_set1(load_int(q + 4 * c)));
  return sum;
}

struct FewQ10 {
  static constexpr int kBytes = 18, kParts = 4, kScales = 1, kOffset = 1;
  static constexpr Order32 kOrder = order32([](int i) { return i % 4 * 8 + i / 4; });
  F d;
  I bits[4];
  INFER_SIMD FewQ10(const uint8_t* p, size_t stride) : d(f_from_f16_lanes(gather16(p, stride))) {
    i_transpose(p + 2, stride, bits);
  }
  // Value 8 b + n is bit n of byte b. Codes are twice the bits.
  template <int P>
  INFER_SIMD void codes(I* w) const {
    const I x = bits[P], mask = byte_mask(2);
    w[0] = i_and(i_shl<1>(x), mask), w[1] = i_and(x, mask);
    w[2] = shift_mask<1>(x, mask), w[3] = shift_mask<2>(x, mask), w[4] = shift_mask<3>(x, mask);
    w[5] = shift_mask<4>(x, mask), w[6] = shift_mask<5>(x, mask), w[7] = shift_mask<6>(x, mask);
  }
  static INFER_SIMD I sum(const I* w, const int8_t* q, int32_t start) { return small_sum<8>(w, q, start); }
  template <int P>
  INFER_SIMD void scales(F* to) const {
    to[0] = d;
  }
};

struct FewQ20 {
  static constexpr int kBytes = 18, kParts = 2, kScales = 1, kOffset = 1;
  static constexpr Order32 kOrder = order32([](int i) { return i / 16 * 16 + i % 4 * 4 + i / 4 % 4; });
  F d;
  I bits[4];
  INFER_SIMD FewQ20(const uint8_t* p, size_t stride) : d(f_from_f16_lanes(gather16(p, stride))) {
    i_transpose(p + 2, stride, bits);
  }
  // Value 4 b + n of 16 is in byte b of a vector, in bits 0 and 1 or in bits 2 and 3. The latter make sums four times
  // as large.
  template <int P>
  INFER_SIMD void codes(I* w) const {
    for (int h = 0; h < 2; ++h) w[2 * h] = bits[2 * P + h], w[2 * h + 1] = i_shr<4>(bits[2 * P + h]);
  }
  static INFER_SIMD I sum(const I* w, const int8_t* q, int32_t start) {
    I low = i_set1(start), high = i_zero();
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      low = i_dot_u8(low, i_and(w[c], byte_mask(3)), i_set1(load_int(q + 8 * c)));
      high = i_dot_u8(high, i_and(w[c], byte_mask(12)), i_set1(load_int(q + 8 * c + 4)));
    }
    return i_add(low, i_sar<2>(high));
  }
  template <int P>
  INFER_SIMD void scales(F* to) const {
    to[0] = d;
  }
};

struct FewNVFP4 {
  static constexpr int kBytes = 36, kParts = 2, kScales = 2, kOffset = 12;
  static constexpr Order32 kOrder = order32([](int i) { return i; });
  const uint8_t* p;
  size_t stride;
  I d;
  INFER_SIMD FewNVFP4(const uint8_t* at, size_t s) : p(at), stride(s), d(gather32(at, s)) {}
  template <int P>
  INFER_SIMD void codes(I* w) const {
    NVFP4::unpack(p + 4 + 16 * P, stride, w);
  }
  static INFER_SIMD I sum(const I* w, const int8_t* q, int32_t start) { return small_sum<4>(w, q, start); }
  template <int P>
  INFER_SIMD void scales(F* to) const {
    to[0] = f_from_ue4m3_half(i_and(i_shr<16 * P>(d), i_set1(255)));
    to[1] = f_from_ue4m3_half(i_and(i_shr<16 * P + 8>(d), i_set1(255)));
  }
};

// 32 activations in the order of a format.
struct SmallInput {
  int8_t q[32];
  int32_t start[2];  // -kOffset times the sum of the activations with one scale
  float d;
};
template <typename W, size_t... kPlaces>
INFER_SIMD void arrange_small(const Activation32& x, SmallInput& to, std::index_sequence<kPlaces...>) {
  typedef int8_t Bytes32 __attribute__((vector_size(32)));
  Bytes32 q;
  __builtin_memcpy(&q, x.q, 32);
  q = __builtin_shufflevector(q, q, W::kOrder.v[kPlaces]...);
  __builtin_memcpy(to.q, &q, 32);
  for (int s = 0; s < 2; ++s) to.start[s] = -W::kOffset * (W::kScales == 1 ? x.sum32 : x.sum16[s]);
  to.d = x.d;
}

// Multiplies part P, and those after it, of the blocks of 16 rows by T tokens and adds to acc.
template <typename W, int T, int P = 0>
INFER_SIMD void add_parts(const W& w, const SmallInput* x, F* acc) {
  if constexpr (P < W::kParts) {
    constexpr int kCount = 8 / W::kScales;
    I codes[8];
    F d[W::kScales];
    w.template codes<P>(codes);
    w.template scales<P>(d);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      const SmallInput& a = x[P * T + t];
#pragma GCC unroll 2
      for (int s = 0; s < W::kScales; ++s) {
        const I sum = W::sum(codes + kCount * s, a.q + 16 * s, a.start[s]);
        acc[t] = f_fma(f_mul(f_from_int(sum), d[s]), f_set1(a.d), acc[t]);
      }
    }
    add_parts<W, T, P + 1>(w, x, acc);
  }
}

// At most T tokens; GEMV where T is 1.
template <typename W, int T>
INFER_OUTLINE void few_small(const MatmulArgs& a) {
  static_assert(T <= kMostSmallTokens && sizeof(SmallInput) <= 48);
  const auto* from = static_cast<const Activation32*>(a.x);
  auto* x = reinterpret_cast<SmallInput*>(a.scratch);  // [k / 32][T]
  for (int64_t b = 0; b < a.k / 32; ++b) {
    for (int t = 0; t < T; ++t)
      arrange_small<W>(from[b * a.x_stride + t], x[b * T + t], std::make_index_sequence<32>());
  }
  const int64_t blocks = a.k / 32 / W::kParts;
  const int valid = a.n_tokens < T ? static_cast<int>(a.n_tokens) : T;
  alignas(64) uint8_t copy[16 * W::kBytes + 64];
  for (int64_t row = a.row_begin; row < a.row_end; row += 16) {
    const RowGroup g = row_group(a, row);
    F acc[T];
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) acc[t] = f_zero();
    for (int64_t b = 0; b < blocks; ++b) {
      const uint8_t* p = g.base + b * W::kBytes;
      size_t stride = g.stride;
      if (g.count < 16) {
        copy_rows<W::kBytes>(g, b * W::kBytes, copy);
        p = copy, stride = W::kBytes;
      } else {
        prefetch_part<0, 1, 16 * W::kBytes>(in_stream(a, g.base + kPrefetchDistance + b * 16 * W::kBytes));
      }
      add_parts<W, T>(W(p, stride), x + b * W::kParts * T, acc);
    }
    for (int t = 0; t < valid; ++t) f_store_first(a.out[t] + row, acc[t], g.count);
  }
}
