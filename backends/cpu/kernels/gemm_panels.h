// The panels and tiles of gemm.h: 16 unpacked rows of a super-block, or of eight blocks of 32, and their multiplication
// by a few tokens. Included inside an anonymous namespace after gemm_few.h.

// For levels that can only add products of bytes in pairs, in 16 bits (kPairSums). Codes below 2^kBits leave room for
// kSums16 such sums before they must be added in 32 bits, or multiplied by a scale in both halves of a lane. A signed
// code is split into nibbles: 16 times the upper one, to which 8 was added, plus the lower one.
template <typename W>
constexpr int kSums16 = !kPairSums                    ? 0
                        : W::kSigned || W::kBits == 4 ? 8
                        : W::kBits == 7               ? 1
                        : W::kBits == 6               ? 2
                                                      : 4;
template <typename W>
constexpr bool kHalves = kSums16<W> != 0 && W::kSigned;
INFER_SIMD void split_halves(I w, I& low, I& high) {
  low = i_and(w, byte_mask(15));
  high = i_xor(shift_mask<4>(w, byte_mask(15)), byte_mask(8));
}
INFER_SIMD I both_halves(I scale) { return i_or(i_and(scale, i_set1(0xffff)), i_shl<16>(scale)); }

// The offset of the codes in the sums of kSums16. It is subtracted for two sub-blocks at once.
template <typename W>
constexpr int kSumOffset = kSums16<W> == 0 || W::kMin ? 0
                           : W::kSigned               ? 128
                                                      : W::kOffset;

// Formats whose sums of a sub-block exceed 16 bits only for extreme activations. They fit if the magnitudes of any 16
// activations add up to at most kNarrowPeak: codes have at most 6 bits and an offset of 32 (Q5_K sums 32 activations,
// but its codes have 5 bits and an offset of 16). Otherwise sums are scaled in 32 bits.
template <typename W>
constexpr bool kMayBeNarrow = kNarrowPays&& kSums16<W> == 0 && !W::kNarrow && !W::kSigned;
constexpr int kNarrowPeak = 1023;
template <typename W>
constexpr int kPanelOffset = W::kOffset == 0 && kMayBeNarrow<W> ? 16 : W::kOffset;
// The formula of formats with minima has unsigned codes, so the offset is added back.
template <typename W>
constexpr bool kPanelRestores = kSums16<W> == 0 && W::kMin&& kPanelOffset<W> != 0;

template <typename W>
struct SuperPanel {
  I codes[kHalves<W> ? 128 : 64];
  I scale[256 / W::kSub];                                             // upper halves are zero where sums may be narrow
  I pair[kPanelRestores<W> ? 4 : kSumOffset<W> ? 128 / W::kSub : 1];  // scales, times any offset to restore
  I mins[W::kMin ? 128 / W::kSub : 1];
  F d, dmin;
};
template <typename W>
struct SuperPanelSink {
  SuperPanel<W>& panel;
  const typename W::Head& head;
  template <int S>
  INFER_SIMD void operator()(const I* w) const {
#pragma GCC unroll 8
    for (int c = 0; c < W::kSub / 4; ++c) {
      const int at = W::kSub / 4 * S + c;
      if constexpr (kHalves<W>) split_halves(w[c], panel.codes[at], panel.codes[64 + at]);
      else panel.codes[at] = w[c];
    }
    const I scale = head.template scale<S>();
    panel.scale[S] = kSums16<W> && !kHalves<W> ? both_halves(scale)
                     : kMayBeNarrow<W>         ? i_and(scale, i_set1(0xffff))
                                               : scale;
    if constexpr (W::kMin && S % 2 == 0) panel.mins[S / 2] = head.template mins<S / 2>();
    if constexpr (kPanelRestores<W> && S % 2 == 0) {
      panel.pair[S / 2] = i_shl<__builtin_ctz(kPanelOffset<W>)>(head.template scale_pair<S / 2>());
    }
  }
};
template <typename W>
INFER_SIMD void fill_panel(const uint8_t* p, size_t stride, SuperPanel<W>& panel) {
  const typename W::Head head(p, stride);
  panel.d = head.d;
  if constexpr (W::kMin) panel.dmin = head.dmin;
  W::unpack(p, stride, SuperPanelSink<W>{panel, head});
  if constexpr (kSumOffset<W> != 0) {
    for (int i = 0; i < 128 / W::kSub; ++i) {
      panel.pair[i] = i_or(i_and(panel.scale[2 * i], i_set1(0xffff)), i_shl<16>(panel.scale[2 * i + 1]));
    }
  }
}

// Adds kSums16 pair sums from vector `first` of the panel on: of the codes, or of their lower and upper nibbles.
template <typename W, int R, int T, typename Panel, typename Activation>
INFER_SIMD void sums16(const Panel* panel, int first, const Activation* x, int at, I (*low)[T], I (*high)[T]) {
#pragma GCC unroll 8
  for (int k = 0; k < kSums16<W>; ++k) {
    I b[T];
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) b[t] = i_set1(load_int(x[t].q + at + 4 * k));
    const auto add = [&](const I* codes, I(*sum)[T]) INFER_LAMBDA {
#pragma GCC unroll 3
      for (int r = 0; r < R; ++r) {
        I w = codes[r * (sizeof(Panel) / sizeof(I))];
        keep_in_register(w);  // not loaded again for every token
#pragma GCC unroll 4
        for (int t = 0; t < T; ++t) {
          const I two = i_pair_sums(w, b[t]);
          sum[r][t] = k == 0 ? two : i_add16(sum[r][t], two);
        }
      }
    };
    add(panel->codes + first + k, low);
    if constexpr (kHalves<W>) add(panel->codes + 64 + first + k, high);
  }
}

template <typename W, int R, int T>
INFER_SIMD void super_tile16(const SuperPanel<W>* panel, const Activation256* x, float* c) {
  constexpr int kVectors = W::kSub / 4, kSteps = kSums16<W>;
  static_assert(kVectors % kSteps == 0);
  I sum[R][T];
#pragma GCC unroll 4
  for (int t = 0; t < T; ++t) {
    const int16_t* sums = W::kSub == 16 ? x[t].sum16 : x[t].sum32;
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      sum[r][t] = i_zero();
      if constexpr (kSumOffset<W> != 0) {
        for (int i = 0; i < 128 / W::kSub; ++i) {
          sum[r][t] = i_madd16(sum[r][t], panel[r].pair[i], i_set1(load_int(sums + 2 * i)));
        }
        sum[r][t] = i_mul(sum[r][t], i_set1(-kSumOffset<W>));
      }
    }
  }
  for (int s = 0; s < 256 / W::kSub; ++s) {
#pragma GCC unroll 2
    for (int first = 0; first < kVectors; first += kSteps) {
      I low[R][T], high[R][T];
      sums16<W, R, T>(panel, kVectors * s + first, x, W::kSub * s + 4 * first, low, high);
#pragma GCC unroll 4
      for (int t = 0; t < T; ++t) {
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
          if constexpr (kHalves<W>) {
            const I part = i_madd16(i_madd16(i_zero(), low[r][t], i_set1(0x10001)), high[r][t], i_set1(0x100010));
            sum[r][t] = i_add(sum[r][t], i_mul(part, panel[r].scale[s]));
          } else {
            sum[r][t] = i_madd16(sum[r][t], low[r][t], panel[r].scale[s]);
          }
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      F v = f_mul(f_from_int(sum[r][t]), panel[r].d);
      if constexpr (W::kMin) {
        const int16_t* sums = W::kSub == 16 ? x[t].sum16 : x[t].sum32;
        I m = i_zero();
        for (int p = 0; p < 128 / W::kSub; ++p) m = i_madd16(m, panel[r].mins[p], i_set1(load_int(sums + 2 * p)));
        v = f_fnma(f_from_int(m), panel[r].dmin, v);
      }
      float* at = c + t * 16 * R + 16 * r;
      f_store(at, f_fma(v, f_set1(x[t].d), f_load(at)));
    }
  }
}

// Prefetches part i of kParts of the activations at x; the hardware prefetcher cannot follow this many rows.
constexpr int kTilesAhead = 2;
template <int T, int kSixteens, int kParts>
INFER_SIMD void prefetch_next(const void* x, int i) {
  constexpr int kLines = (T * kSixteens + 4 * kParts - 1) / (4 * kParts);
#pragma GCC unroll 8
  for (int j = 0; j < kLines; ++j) __builtin_prefetch(static_cast<const char*>(x) + 64 * (kLines * i + j), 0, 3);
}

// Sets the sums of a super-block to zero, or to the offset that is added back (kPanelRestores).
template <typename W, int R, int T>
INFER_SIMD void start_sums(const SuperPanel<W>* panel, const Activation256* x, I (&sum)[R][T]) {
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) sum[r][t] = i_zero();
  }
  if constexpr (kPanelRestores<W>) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
        const I b = i_set1(load_int(x[t].sum32 + 2 * i));
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) sum[r][t] = i_madd16(sum[r][t], panel[r].pair[i], b);
      }
    }
  }
}

// Adds the dot products of sub-block s to part[r][t].
template <typename W, int R, int T>
INFER_SIMD void add_sub_block(const SuperPanel<W>* panel, const Activation256* x, int s, I (&part)[R][T]) {
  constexpr int kVectors = W::kSub / 4;
#pragma GCC unroll 8
  for (int k = 0; k < kVectors; ++k) {
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
      I b = i_set1(load_int(x[t].q + W::kSub * s + 4 * k));
      keep_in_register(b);  // not loaded again for every panel
#pragma GCC unroll 3
      for (int r = 0; r < R; ++r) part[r][t] = dot4<W>(part[r][t], panel[r].codes[kVectors * s + k], b);
    }
  }
}

// Multiplies the sums of a super-block by its scale, subtracts the minima, multiplies by the scale of the activations
// and adds the result to the accumulators.
template <typename W, int R, int T>
INFER_SIMD void store_sums(const SuperPanel<W>* panel, const Activation256* x, const I (&sum)[R][T], float* c) {
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    I m[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) m[r] = i_zero();
    if constexpr (W::kMin) {
      const int16_t* sums = W::kSub == 16 ? x[t].sum16 : x[t].sum32;
#pragma GCC unroll 8
      for (int p = 0; p < 128 / W::kSub; ++p) {
        const I b = i_set1(load_int(sums + 2 * p));
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) m[r] = i_madd16(m[r], panel[r].mins[p], b);
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      F v = f_mul(f_from_int(sum[r][t]), panel[r].d);
      if constexpr (W::kMin) v = f_fnma(f_from_int(m[r]), panel[r].dmin, v);
      float* at = c + t * 16 * R + 16 * r;
      f_store(at, f_fma(v, f_set1(x[t].d), f_load(at)));
    }
  }
}

// R panels times T tokens; c[t][16 R] are the accumulators. kNarrow: sums of a sub-block fit in 16 bits.
template <typename W, int R, int T, bool kNarrow>
INFER_SIMD void super_tile(const SuperPanel<W>* panel, const Activation256* x, float* c) {
  constexpr int kSubs = 256 / W::kSub;
  I sum[R][T];
  start_sums<W, R, T>(panel, x, sum);
  // The initial sum of each sub-block, in memory: broadcasting loads do not occupy the multiply units.
  alignas(64) int32_t start[kPanelOffset<W> ? T : 1][16];
  if constexpr (kPanelOffset<W> != 0) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      const I sums = i_load_s16(W::kSub == 16 ? x[t].sum16 : x[t].sum32);
      i_store(start[t], i_sub(i_zero(), i_shl<__builtin_ctz(kPanelOffset<W>)>(sums)));
    }
    asm volatile("" ::: "memory");  // otherwise the compiler would extract the lanes from registers
  }
#pragma GCC unroll 1
  for (int s = 0; s < kSubs; ++s) {
    I part[R][T];
    prefetch_next<T, sizeof(Activation256) / 16, kSubs>(x + kTilesAhead * T, s);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      I first = kPanelOffset<W> ? i_set1(start[t][s]) : i_zero();
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) part[r][t] = first;
    }
    add_sub_block<W, R, T>(panel, x, s, part);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      I scale = panel[r].scale[s];
      if constexpr (!kNarrow && kMayBeNarrow<W>) scale = i_sar<16>(i_shl<16>(scale));
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
        sum[r][t] = kNarrow ? i_madd16(sum[r][t], part[r][t], scale) : i_add(sum[r][t], i_mul(part[r][t], scale));
      }
    }
  }
  store_sums<W, R, T>(panel, x, sum, c);
}
template <typename W, int R, int T>
INFER_SIMD void super_tile(const SuperPanel<W>* panel, const Activation256* x, float* c) {
  if constexpr (kMayBeNarrow<W>) {
    int32_t peak = x[0].peak16;
    for (int t = 1; t < T; ++t) peak = peak > x[t].peak16 ? peak : x[t].peak16;
    if (peak > kNarrowPeak) return super_tile<W, R, T, false>(panel, x, c);
    super_tile<W, R, T, true>(panel, x, c);
  } else {
    super_tile<W, R, T, W::kNarrow>(panel, x, c);
  }
}

// Up to eight blocks of 32.
template <typename W>
struct SmallPanel {
  I codes[kHalves<W> ? 128 : 64];
  F d[8 * kScales<W>], m[W::kMin ? 8 : 1];
};
template <typename W>
INFER_SIMD void fill_panel(const uint8_t* p, size_t stride, int part, int j, SmallPanel<W>& panel) {
  F m;
  unpack_block<W>(p, stride, part, panel.codes + 8 * j, panel.d + kScales<W> * j, m);
  if constexpr (W::kMin) panel.m[j] = m;
  if constexpr (kHalves<W>) {
    for (int i = 8 * j; i < 8 * j + 8; ++i) split_halves(panel.codes[i], panel.codes[i], panel.codes[64 + i]);
  }
}
template <typename W, int R, int T>
INFER_SIMD void small_tile16(const SmallPanel<W>* panel, int blocks, const Activation32* x, int64_t x_stride,
                             float* c) {
  constexpr int kCount = 8 / kScales<W>;  // vectors of codes with one scale
  for (int j = 0; j < blocks * kScales<W>; ++j) {
    const int part = j % kScales<W>, at = 4 * kCount * part;
    I sum[R][T];
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
      constexpr int kOffset = kHalves<W> ? 128 : W::kOffset;
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) sum[r][t] = kOffset ? i_set1(-kOffset * sum_of<W>(x[t], part)) : i_zero();
    }
#pragma GCC unroll 2
    for (int first = 0; first < kCount; first += kSums16<W>) {
      I low[R][T], high[R][T];
      sums16<W, R, T>(panel, kCount * j + first, x, at + 4 * first, low, high);
#pragma GCC unroll 4
      for (int t = 0; t < T; ++t) {
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
          sum[r][t] = i_madd16(sum[r][t], low[r][t], i_set1(0x10001));
          if constexpr (kHalves<W>) sum[r][t] = i_madd16(sum[r][t], high[r][t], i_set1(0x100010));
        }
      }
    }
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        F v = f_mul(f_from_int(sum[r][t]), panel[r].d[j]);
        if constexpr (W::kMin) v = f_fma(f_set1(x[t].sum32), panel[r].m[j], v);
        float* at_c = c + t * 16 * R + 16 * r;
        f_store(at_c, f_fma(v, f_set1(x[t].d), f_load(at_c)));
      }
    }
    if (part == kScales<W> - 1) x += x_stride;
  }
}
template <typename W, int R, int T>
INFER_SIMD void small_tile(const SmallPanel<W>* panel, int blocks, const Activation32* x, int64_t x_stride, float* c) {
  constexpr int kCount = 8 / kScales<W>;  // vectors of codes with one scale
  // The initial sum of each block, in memory as in super_tile.
  alignas(64) int32_t start[W::kOffset ? 8 * kScales<W> : 1][T];
  if constexpr (W::kOffset != 0) {
    for (int j = 0; j < blocks * kScales<W>; ++j) {
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
        start[j][t] = -W::kOffset * sum_of<W>(x[j / kScales<W> * x_stride + t], j % kScales<W>);
      }
    }
    asm volatile("" ::: "memory");
  }
  F acc[R][T];
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) acc[r][t] = f_load(c + t * 16 * R + 16 * r);
  }
#pragma GCC unroll 1
  for (int j = 0; j < blocks * kScales<W>; ++j) {
    const int part = j % kScales<W>;
    I sum[R][T];
    if (part == 0) prefetch_next<T, sizeof(Activation32) / 16, 1>(x + kTilesAhead * T, 0);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      const I first = W::kOffset ? i_set1(start[W::kOffset ? j : 0][t]) : i_zero();
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) sum[r][t] = first;
    }
#pragma GCC unroll 8
    for (int k = 0; k < kCount; ++k) {
#pragma GCC unroll 4
      for (int t = 0; t < T; ++t) {
        I b = i_set1(load_int(x[t].q + 4 * (kCount * part + k)));
        keep_in_register(b);  // not loaded again for every panel
#pragma GCC unroll 3
        for (int r = 0; r < R; ++r) sum[r][t] = dot4<W>(sum[r][t], panel[r].codes[kCount * j + k], b);
      }
    }
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      const F dx = f_set1(x[t].d);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        F v = f_mul(f_from_int(sum[r][t]), panel[r].d[j]);
        if constexpr (W::kMin) v = f_fma(f_set1(x[t].sum32), panel[r].m[j], v);
        acc[r][t] = f_fma(v, dx, acc[r][t]);
      }
    }
    if (part == kScales<W> - 1) x += x_stride;
  }
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) f_store(c + t * 16 * R + 16 * r, acc[r][t]);
  }
}
