// Products with F32, F16 and BF16 weights: lanes are 16 consecutive k, as the formula's 16 partial sums. A tile of rows
// and tokens shares loads. Included inside an anonymous namespace after a SIMD header.

struct LoadF32 {
  using Element = float;
  static INFER_SIMD F load(const float* p) { return f_load(p); }
  static INFER_SIMD float one(const float* p) { return *p; }
};
struct LoadF16 {
  using Element = uint16_t;
  static INFER_SIMD F load(const uint16_t* p) { return f_load_f16(p); }
  static INFER_SIMD float one(const uint16_t* p) {
    uint16_t t[16] = {*p};
    float y[16];
    f_store(y, f_load_f16(t));
    return y[0];
  }
};
struct LoadBF16 {
  using Element = uint16_t;
  static INFER_SIMD F load(const uint16_t* p) { return f_load_bf16(p); }
  static INFER_SIMD float one(const uint16_t* p) { return __builtin_bit_cast(float, static_cast<uint32_t>(*p) << 16); }
};

template <typename L, int R, int T>
INFER_SIMD void float_tile(const ProductArgs& a, int64_t row, int64_t token) {
  const typename L::Element* w[R];
  const float* x[T];
  for (int r = 0; r < R; ++r) w[r] = reinterpret_cast<const typename L::Element*>(a.weight + (row + r) * a.row_bytes);
  for (int t = 0; t < T; ++t) x[t] = static_cast<const float* const*>(a.x)[token + t];
  F acc[R][T];
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) acc[r][t] = f_zero();
  }
  const int64_t whole = a.k / 16 * 16;
  // The first tile of tokens fetches what follows these rows in the stream of weights, as much as it reads.
  constexpr int64_t kStep = 16 * R * sizeof(typename L::Element);
  const uint8_t* ahead = in_stream(a, a.weight + row * a.row_bytes + kPrefetchDistance);
  for (int64_t i = 0; i < whole; i += 16, ahead += kStep) {
    if (token == 0) {
      for (int64_t at = 0; at < kStep; at += 64) __builtin_prefetch(ahead + at, 0, 2);
    }
    F b[T];
    for (int t = 0; t < T; ++t) b[t] = f_load(x[t] + i);
    for (int r = 0; r < R; ++r) {
      const F v = L::load(w[r] + i);
      for (int t = 0; t < T; ++t) acc[r][t] = f_fma(v, b[t], acc[r][t]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) {
      if (whole < a.k) {
        float p[16];
        f_store(p, acc[r][t]);
        for (int64_t i = whole; i < a.k; ++i) p[i - whole] = __builtin_fmaf(L::one(w[r] + i), x[t][i], p[i - whole]);
        acc[r][t] = f_load(p);
      }
      a.out[token + t][row + r] = f_reduce_add(acc[r][t]);
    }
  }
}

template <typename L>
void product_float(const ProductArgs& a) {
  constexpr int R = kFloatRows, T = kFloatTokens;
  int64_t row = a.row_begin;
  for (; row + R <= a.row_end; row += R) {
    int64_t t = 0;
    if constexpr (T > 1) {
      for (; t + T <= a.n_tokens; t += T) float_tile<L, R, T>(a, row, t);
    }
    for (; t < a.n_tokens; ++t) float_tile<L, R, 1>(a, row, t);
  }
  for (; row < a.row_end; ++row) {
    for (int64_t t = 0; t < a.n_tokens; ++t) float_tile<L, 1, 1>(a, row, t);
  }
}
