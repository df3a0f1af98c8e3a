// GEMV and GEMM with F32, F16 and BF16 weights: lanes are 16 consecutive k, the 16 partial sums of the formula. A tile
// of rows and tokens shares loads. With few tokens the weights are read as one stream; with more, a GEMM works on
// blocks of rows, tokens and k that fit in a core's caches. Included inside an anonymous namespace after a SIMD header.

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

// Adds the last k % 16 values of a row, each to its own lane, and returns the sum of the lanes.
template <typename L>
INFER_SIMD float finish_row(F acc, const typename L::Element* w, const float* x, int64_t whole, int64_t k) {
  if (whole < k) {
    float p[16];
    f_store(p, acc);
    for (int64_t i = whole; i < k; ++i) p[i - whole] = __builtin_fmaf(L::one(w + i), x[i], p[i - whole]);
    acc = f_load(p);
  }
  return f_reduce_add(acc);
}

// ---- Few tokens ----

template <typename L, int R, int T>
INFER_SIMD void float_tile(const MatmulArgs& a, int64_t row, int64_t token) {
  const typename L::Element* w[R];
  const float* x[T];
  for (int r = 0; r < R; ++r) w[r] = reinterpret_cast<const typename L::Element*>(a.weight + (row + r) * a.row_bytes);
  for (int t = 0; t < T; ++t) x[t] = static_cast<const float* const*>(a.x)[token + t];
  F acc[R][T];
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) acc[r][t] = f_zero();
  }
  const int64_t whole = a.k / 16 * 16;
  // The first tile of tokens prefetches the weights that follow these rows in the stream, as many bytes as it reads.
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
    for (int t = 0; t < T; ++t) a.out[token + t][row + r] = finish_row<L>(acc[r][t], w[r], x[t], whole, a.k);
  }
}

template <typename L>
void gemm_few_float(const MatmulArgs& a) {
  constexpr int R = kFloatRows, T = kFloatFewTokens;
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

// ---- GEMM ----

// Rows of weights are expanded to F32 in the order in which tiles read them, and multiplied by the tokens of a block,
// one chunk of k after the other. `sums` holds the partial sums. Missing rows and tokens repeat the last one and are
// not stored.
struct FloatBlock {
  static constexpr int64_t kRows = kFloatBlockRows, kTokens = kFloatBlockTokens, kChunk = kFloatChunk;
  static constexpr int64_t kTile = kFloatRows * kFloatTokens;
  static_assert(kRows % kFloatRows == 0 && kTokens % kFloatTokens == 0 && kChunk % 16 == 0);

  float* panel;  // [kRows / kFloatRows][kChunk / 16][kFloatRows][16]
  float* sums;   // [kTokens / kFloatTokens][kRows / kFloatRows][kFloatRows][kFloatTokens][16]
  explicit FloatBlock(float* scratch) : panel(scratch), sums(scratch + kRows * kChunk) {}  // kFloatScratchBytes

  float* tile_sums(int64_t token_tile, int64_t row_tile) const {
    return sums + (token_tile * (kRows / kFloatRows) + row_tile) * kTile * 16;
  }
};

// Values [begin, begin + n) of `rows` rows from `row` on, n a multiple of 16.
template <typename L>
INFER_SIMD void fill_panel(const MatmulArgs& a, int64_t row, int64_t rows, int64_t begin, int64_t n, float* panel) {
  const int64_t tiles = (rows + kFloatRows - 1) / kFloatRows;
  for (int64_t i = 0; i < tiles * kFloatRows; ++i) {
    const auto* w =
        reinterpret_cast<const typename L::Element*>(a.weight + (row + (i < rows ? i : rows - 1)) * a.row_bytes);
    float* to = panel + i / kFloatRows * kFloatRows * FloatBlock::kChunk + i % kFloatRows * 16;
    for (int64_t j = 0; j < n; j += 16) f_store(to + j * kFloatRows, L::load(w + begin + j));
  }
}

// One tile over n values of k. The first chunk starts its sums at zero.
INFER_SIMD void float_block_tile(const float* panel, const float* const* x, int64_t n, bool first, float* sums) {
  constexpr int R = kFloatRows, T = kFloatTokens;
  F acc[R][T];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) acc[r][t] = first ? f_zero() : f_load(sums + (r * T + t) * 16);
  }
#pragma GCC unroll 1
  for (int64_t i = 0; i < n; i += 16, panel += 16 * R) {
    F w[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) w[r] = f_load(panel + 16 * r);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      F b = f_load(x[t] + i);
      keep_in_register(b);  // not loaded again for every row
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) acc[r][t] = f_fma(w[r], b, acc[r][t]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) f_store(sums + (r * T + t) * 16, acc[r][t]);
  }
}

template <typename L>
void store_float_block(const MatmulArgs& a, const FloatBlock& block, int64_t row, int64_t rows, int64_t token,
                       int64_t tokens) {
  constexpr int R = kFloatRows, T = kFloatTokens;
  const auto* x = static_cast<const float* const*>(a.x);
  const int64_t whole = a.k / 16 * 16;
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t r = 0; r < rows; ++r) {
      const F acc = f_load(block.tile_sums(t / T, r / R) + (r % R * T + t % T) * 16);
      const auto* w = reinterpret_cast<const typename L::Element*>(a.weight + (row + r) * a.row_bytes);
      a.out[token + t][row + r] = finish_row<L>(acc, w, x[token + t], whole, a.k);
    }
  }
}

template <typename L>
INFER_OUTLINE void float_block(const MatmulArgs& a, int64_t row, int64_t rows, int64_t token, int64_t tokens) {
  constexpr int R = kFloatRows, T = kFloatTokens;
  const FloatBlock block(a.scratch);
  const int64_t whole = a.k / 16 * 16;
  for (int64_t begin = 0; begin == 0 || begin < whole; begin += FloatBlock::kChunk) {
    const int64_t n = whole - begin < FloatBlock::kChunk ? whole - begin : FloatBlock::kChunk;
    fill_panel<L>(a, row, rows, begin, n, block.panel);
    for (int64_t t = 0; t < tokens; t += T) {
      const float* x[T];
      for (int64_t i = 0; i < T; ++i) {
        x[i] = static_cast<const float* const*>(a.x)[token + (t + i < tokens ? t + i : tokens - 1)] + begin;
      }
      for (int64_t r = 0; r < rows; r += R) {
        float_block_tile(block.panel + r * FloatBlock::kChunk, x, n, begin == 0, block.tile_sums(t / T, r / R));
      }
    }
  }
  store_float_block<L>(a, block, row, rows, token, tokens);
}

template <typename L>
void gemm_float(const MatmulArgs& a) {
  // The activations of a block of tokens stay in the cache while all rows are processed.
  for (int64_t t = 0; t < a.n_tokens; t += FloatBlock::kTokens) {
    const int64_t tokens = a.n_tokens - t < FloatBlock::kTokens ? a.n_tokens - t : FloatBlock::kTokens;
    for (int64_t row = a.row_begin; row < a.row_end; row += FloatBlock::kRows) {
      const int64_t rows = a.row_end - row < FloatBlock::kRows ? a.row_end - row : FloatBlock::kRows;
      float_block<L>(a, row, rows, t, tokens);
    }
  }
}

// Tokens:                        1 to kFloatGemmTokens - 1                    more
template <typename L>
constexpr MatmulKernels float_kernels(DataType type) {
  return {type, {{kFloatGemmTokens - 1, gemm_few_float<L>}, {kAny, gemm_float<L>}}};
}
