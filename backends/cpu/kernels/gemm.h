// GEMM with quantized weights: a panel of 16 rows of a super-block is unpacked to L1, and multiplied by all tokens in
// tiles of kTokenTile. Included inside an anonymous namespace after gemm_panels.h.

// Fills block j of a panel from block `block` of a group of rows; a group that is not full is copied first.
template <typename Many>
INFER_SIMD void fill_rows(const RowGroup& g, int64_t block, int j, typename Many::Panel& panel, uint8_t* copy) {
  constexpr int kBytes = Many::kBytes;
  const uint8_t* p = g.base + block * kBytes;
  size_t stride = g.stride;
  if (g.count < 16) {
    copy_rows<kBytes>(g, block * kBytes, copy);
    p = copy, stride = kBytes;
  }
  Many::fill(p, stride, j, panel);
}

// A panel covers kPanel blocks of the walk; the last panel of a row may have fewer.
template <typename W>
struct SuperMany : SuperWalk<W> {
  static constexpr int kPanel = 1, kCopyBytes = 16 * W::kBytes + 64;
  using Panel = SuperPanel<W>;
  static constexpr int64_t block_bytes() { return W::kBytes; }
  static INFER_SIMD void fill(const uint8_t* p, size_t stride, int, Panel& panel) { fill_panel(p, stride, panel); }
  INFER_SIMD void fill_group(const RowGroup& g, int64_t block, int j, Panel& panel, uint8_t* copy) const {
    fill_rows<SuperMany>(g, block, j, panel, copy);
  }
  template <int R>
  static INFER_SIMD void tile(const Panel* p, int, const Activation256* x, int64_t, float* c) {
    if constexpr (kSums16<W> != 0) super_tile16<W, R, kTokenTile>(p, x, c);
    else super_tile<W, R, kTokenTile>(p, x, c);
  }
};
template <typename W>
struct SmallMany : SmallWalk<W> {
  static constexpr int kPanel = 8 / kParts<W>, kCopyBytes = 16 * W::kBytes + 64;
  using Panel = SmallPanel<W>;
  static constexpr int64_t block_bytes() { return W::kBytes; }
  static INFER_SIMD void fill(const uint8_t* p, size_t stride, int j, Panel& panel) {
    for (int part = 0; part < kParts<W>; ++part) fill_panel(p, stride, part, kParts<W> * j + part, panel);
  }
  INFER_SIMD void fill_group(const RowGroup& g, int64_t block, int j, Panel& panel, uint8_t* copy) const {
    fill_rows<SmallMany>(g, block, j, panel, copy);
  }
  template <int R>
  static INFER_SIMD void tile(const Panel* p, int blocks, const Activation32* x, int64_t x_stride, float* c) {
    const int n = blocks * kParts<W>;
    if constexpr (kSums16<W> != 0) small_tile16<W, R, kTokenTile>(p, n, x, x_stride, c);
    else small_tile<W, R, kTokenTile>(p, n, x, x_stride, c);
  }
};

// The results of R groups of 16 rows for a tile of tokens. Those of different tokens are far apart in memory, so they
// are prefetched one tile before they are written, and written between the tiles of the last panel instead of all at
// the end.
template <int R>
INFER_SIMD void prefetch_outputs(const MatmulArgs& a, int64_t row, int64_t first_token) {
  for (int64_t t = first_token; t < first_token + kTokenTile && t < a.n_tokens; ++t) {
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) __builtin_prefetch(a.out[t] + row + 16 * r, 1, 3);
  }
}
template <int R>
INFER_SIMD void store_outputs(const MatmulArgs& a, int64_t row, int64_t first_token) {
  for (int64_t t = first_token; t < first_token + kTokenTile && t < a.n_tokens; ++t) {
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const int64_t left = a.row_end - (row + 16 * r);
      f_store_first(a.out[t] + row + 16 * r, f_load(a.scratch + t * 16 * R + 16 * r),
                    left < 16 ? static_cast<int>(left) : 16);
    }
  }
}

// R groups of 16 rows from `row` on, all tokens; only the last group may be short.
template <typename Many, int R>
INFER_OUTLINE void gemm_rows(const MatmulArgs& a, const Many& many, int64_t row, typename Many::Panel* panel) {
  const auto* x = static_cast<const typename Many::Activation*>(a.x);
  const int64_t blocks = a.k / Many::kValues, tokens = padded_tokens(a.n_tokens);
  __builtin_memset(a.scratch, 0, sizeof(float) * 16 * R * tokens);
  alignas(64) uint8_t copy[Many::kCopyBytes];
  for (int64_t b = 0; b < blocks; b += Many::kPanel) {
    const int count = blocks - b < Many::kPanel ? static_cast<int>(blocks - b) : Many::kPanel;
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const RowGroup g = row_group(a, row + 16 * r);
      for (int j = 0; j < count; ++j) many.fill_group(g, b + j, j, panel[r], copy);
    }
    const int64_t bytes = 16 * R * many.block_bytes();
    const uint8_t* ahead = in_stream(a, a.weight + (row + 16 * R) * a.row_bytes + b * bytes);
    const int64_t lines = (count * bytes + 63) / 64;
    const bool last = b + Many::kPanel >= blocks;
    for (int64_t t = 0, line = 0; t < tokens; t += kTokenTile) {
      for (; line < lines * (t + kTokenTile) / tokens; ++line) __builtin_prefetch(ahead + 64 * line, 0, 2);
      if (last) prefetch_outputs<R>(a, row, t + kTokenTile);
      Many::template tile<R>(panel, count, x + b * Many::kActivations * a.x_stride + t, a.x_stride,
                             a.scratch + t * 16 * R);
      if (last) store_outputs<R>(a, row, t);
    }
  }
}

template <typename Many>
INFER_SIMD void gemm_groups(const MatmulArgs& a, const Many& many) {
  alignas(64) typename Many::Panel panel[kRowTile];
  int64_t row = a.row_begin;
  for (; row + 16 * (kRowTile - 1) < a.row_end; row += 16 * kRowTile) gemm_rows<Many, kRowTile>(a, many, row, panel);
  for (; row < a.row_end; row += 16) gemm_rows<Many, 1>(a, many, row, panel);
}

template <typename W>
void gemm(const MatmulArgs& a) {
  gemm_groups(a, std::conditional_t<kIsSuper<W>, SuperMany<W>, SmallMany<W>>{});
}
