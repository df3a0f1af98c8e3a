// GEMV and GEMM with up to 4 tokens for the formats of codebooks.h and for TQ1_0 and TQ2_0: blocks are multiplied in
// memory order as in gemm_in_order.h. Same bits as gemm_expanded.h: integers are exact, and the blocks of a row are
// added in ascending order. Included inside an anonymous namespace after gemm_in_order.h.
//
// A format of few_blocks() has
//   kBytes; kUnit: the scale of a block is d * kUnit; d(p): the bits of d of the block at p
//   Input, arrange(q, input): the 256 activations of a block as sums() needs them
//   sums<T>(p, x, sums): multiplies the block at p by x[T]; the 16 lanes of sums[t] add up to the integer sum

// The activations of a block in the order of a format of codebooks.h, and what the offset of its codes contributes.
struct BookInput {
  alignas(64) int8_t codes[4][64];
  int16_t offsets[16][2];  // -kOffset times the sums of the activations that have one scale
};
template <typename W>
INFER_SIMD void arrange_book(const int8_t* q, BookInput& to) {
  constexpr int kGroups = 64 / W::kEntry;
  __builtin_memset(to.offsets, 0, sizeof(to.offsets));
  for (int i = 0; i < kGroups; ++i) {
    for (int j = 0; j < 4; ++j) {
      const int8_t* from = q + (4 * i + j) * W::kEntry;
      __builtin_memcpy(to.codes[j] + i * W::kEntry, from, W::kEntry);
      if constexpr (W::kOffset != 0) {
        for (int b = 0; b < W::kEntry; ++b) {
          to.offsets[(i * W::kEntry + b) / 4][j * W::kScales / 4] -= static_cast<int16_t>(W::kOffset * from[b]);
        }
      }
    }
  }
}

template <typename W, int T>
INFER_SIMD void book_sums(const uint8_t* p, const BookInput* x, I* sums) {
  constexpr int kParts = kPairSums && !W::kFits16 ? 2 : W::kScales;
  const W w(p);
  const I scale = w.scale();
  I part[T][2];
  for (int t = 0; t < T; ++t) part[t][0] = part[t][1] = i_zero();
  each_of_four([&]<int J>() INFER_LAMBDA {
    const I codes = w.template codes<J>();
    const auto add = [&](int t, I q) INFER_LAMBDA {
      I& sum = part[t][J * kParts / 4];
      if constexpr (kPairSums) sum = i_add16(sum, i_pair_sums(codes, q));
      else sum = i_dot_u8(sum, codes, q);
    };
    if constexpr (W::kSigned) {
      const Signs signs = w.template signs<J>();
#pragma GCC unroll 4
      for (int t = 0; t < T; ++t) add(t, i_negate(i_load(x[t].codes[J]), signs));
    } else {
#pragma GCC unroll 4
      for (int t = 0; t < T; ++t) add(t, i_load(x[t].codes[J]));
    }
  });
  const I first = i_and(scale, i_set1(0xffff)), second = i_shr<16>(scale);
#pragma GCC unroll 4
  for (int t = 0; t < T; ++t) {
    I sum = i_zero();
    if constexpr (W::kOffset != 0) sum = i_madd16(sum, i_load(x[t].offsets), scale);
    if constexpr (kPairSums) {
      for (int i = 0; i < kParts; ++i) {
        const I s = W::kScales == 2 && i == 1 ? second : first;
        sum = i_madd16(sum, part[t][i], i_or(s, i_shl<16>(s)));
      }
    } else if constexpr (W::kFits16) {
      sum = i_madd16(sum, W::kScales == 1 ? part[t][0] : i_join16(part[t][0], i_shl<16>(part[t][1])), scale);
    } else if constexpr (W::kScales == 1) {
      sum = i_mul(part[t][0], scale);
    } else {
      sum = i_add(i_mul(part[t][0], first), i_mul(part[t][1], second));
    }
    sums[t] = sum;
  }
}

template <typename W>
struct Book : W {
  using Input = BookInput;
  static void arrange(const int8_t* q, Input& to) { arrange_book<W>(q, to); }
  template <int T>
  static INFER_SIMD void sums(const uint8_t* p, const Input* x, I* sums) {
    book_sums<W, T>(p, x, sums);
  }
};

// ---- Ternary blocks: codes 0 .. 2, whose offset is in `start` ----

template <int N>
struct TernaryInput {
  alignas(64) int8_t codes[N][64];
  int32_t start[16];  // the negated sum of each lane's activations
};
template <int N>
INFER_SIMD void fill_start(TernaryInput<N>& to) {
  I sum = i_zero();
  for (int n = 0; n < N; ++n) sum = i_dot_u8(sum, byte_mask(1), i_load(to.codes[n]));
  i_store(to.start, i_sub(i_zero(), sum));
}
template <int N>
INFER_SIMD I ternary_sum(const TernaryInput<N>& x, const I* codes) {
  I sum = i_load(x.start), pairs = i_zero();
#pragma GCC unroll 5
  for (int n = 0; n < N; ++n) {
    if constexpr (kPairSums) pairs = i_add16(pairs, i_pair_sums(codes[n], i_load(x.codes[n])));
    else sum = i_dot_u8(sum, codes[n], i_load(x.codes[n]));
  }
  return kPairSums ? i_madd16(sum, pairs, i_set1(0x10001)) : sum;
}

struct FewTQ2 {
  static constexpr int kBytes = 66;
  static constexpr float kUnit = 1;
  using Input = TernaryInput<4>;
  static uint16_t d(const uint8_t* p) { return load_u16(p + 64); }
  static INFER_SIMD void arrange(const int8_t* q, Input& to) {
    for (int n = 0; n < 4; ++n) {
      __builtin_memcpy(to.codes[n], q + 32 * n, 32);
      __builtin_memcpy(to.codes[n] + 32, q + 128 + 32 * n, 32);
    }
    fill_start(to);
  }
  template <int T>
  static INFER_SIMD void sums(const uint8_t* p, const Input* x, I* sums) {
    const I q = i_load(p), mask = byte_mask(3);
    const I codes[4] = {i_and(q, mask), shift_mask<2>(q, mask), shift_mask<4>(q, mask), shift_mask<6>(q, mask)};
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) sums[t] = ternary_sum(x[t], codes);
  }
};

struct FewTQ1 {
  static constexpr int kBytes = 54, kSecond = 22;  // bytes from kSecond on are the second half of a vector
  static constexpr float kUnit = 1;
  using Input = TernaryInput<5>;
  static uint16_t d(const uint8_t* p) { return load_u16(p + 52); }
  static INFER_SIMD void arrange(const int8_t* q, Input& to) {
    __builtin_memset(to.codes, 0, sizeof(to.codes));
    for (int n = 0; n < 5; ++n) {
      int8_t* second = to.codes[n] + 32 + (32 - kSecond);
      __builtin_memcpy(to.codes[n], q + 32 * n, 32);
      __builtin_memcpy(second, q + 160 + 16 * n, 16);
      if (n < 4) __builtin_memcpy(second + 16, q + 240 + 4 * n, 4);
    }
    fill_start(to);
  }
  // A byte q is a fraction q / 256 in base three: its next digit is 3 q / 256, and 3 q mod 256 is left.
  static INFER_SIMD I next(I q) { return i_add8(i_add8(q, q), q); }
  template <int T>
  static INFER_SIMD void sums(const uint8_t* p, const Input* x, I* sums) {
    I q = i_load_two(p, p + kSecond);
    if constexpr (kAnyUnsigned) {
      // So 256 times a digit is three times the byte less the next one. No digit has to be computed.
      I now[T], later[T];
#pragma GCC unroll 4
      for (int t = 0; t < T; ++t) now[t] = later[t] = i_zero();
#pragma GCC unroll 5
      for (int n = 0; n < 5; ++n) {
        const I left = next(q);
#pragma GCC unroll 4
        for (int t = 0; t < T; ++t) {
          const I a = i_load(x[t].codes[n]);
          now[t] = i_dot_u8(now[t], q, a), later[t] = i_dot_u8(later[t], left, a);
        }
        q = left;
      }
#pragma GCC unroll 4
      for (int t = 0; t < T; ++t) {
        const I three = i_add(i_add(now[t], now[t]), now[t]);
        sums[t] = i_add(i_sar<8>(i_sub(three, later[t])), i_load(x[t].start));
      }
    } else {
      I codes[5];
      for (int n = 0; n < 5; ++n, q = next(q)) {
        const I quarter = i_mean8(i_mean8(q, i_zero()), i_zero());  // q / 4, rounded up
        codes[n] = shift_mask<6>(i_sub8(q, quarter), byte_mask(3));
      }
#pragma GCC unroll 4
      for (int t = 0; t < T; ++t) sums[t] = ternary_sum(x[t], codes);
    }
  }
};

// ---- The walk over a matrix ----

// The inputs of the blocks of a row, for T tokens each. `next` wraps around at the end of a row.
struct FewInputs {
  const uint8_t *begin, *end, *next;
};

// Multiplies the `count` blocks from p on, at most sixteen, by the inputs, which it advances, and prefetches as many
// bytes from `ahead` on.
template <typename W, int T>
INFER_SIMD void few_chunk(const uint8_t* p, int count, const uint8_t* ahead, FewInputs& inputs, I (*sums)[T],
                          uint16_t* d) {
  const uint8_t* x = inputs.next;
#pragma GCC unroll 1
  for (int i = 0; i < count; ++i, p += W::kBytes, ahead += W::kBytes) {
    __builtin_prefetch(ahead, 0, 2);
    if constexpr (W::kBytes > 64) __builtin_prefetch(ahead + 64, 0, 2);
    W::template sums<T>(p, reinterpret_cast<const typename W::Input*>(x), sums[i]);
    d[i] = W::d(p);
    if ((x += T * sizeof(typename W::Input)) == inputs.end) x = inputs.begin;
  }
  inputs.next = x;
}

// What differs between formats. For one token, the walk below is compiled for each format, with its constants in
// registers (2 to 13 % faster); for more tokens it is compiled once and calls functions of the format.
template <typename W, int T>
struct FewDirect {
  static constexpr float unit = W::kUnit;
  static constexpr int64_t bytes = W::kBytes;
  static constexpr size_t input_bytes = sizeof(typename W::Input);
  static void arrange(const int8_t* q, uint8_t* input) { W::arrange(q, *reinterpret_cast<typename W::Input*>(input)); }
  static INFER_SIMD void chunk(const uint8_t* p, int count, const uint8_t* ahead, FewInputs& inputs, I (*sums)[T],
                               uint16_t* d) {
    few_chunk<W, T>(p, count, ahead, inputs, sums, d);
  }
};
template <int T>
struct FewCalls {
  float unit;
  int64_t bytes;
  size_t input_bytes;
  void (*arrange)(const int8_t* q, uint8_t* input);
  void (*chunk)(const uint8_t* p, int count, const uint8_t* ahead, FewInputs& inputs, I (*sums)[T], uint16_t* d);
};
template <typename W, int T>
INFER_OUTLINE void call_chunk(const uint8_t* p, int count, const uint8_t* ahead, FewInputs& inputs, I (*sums)[T],
                              uint16_t* d) {
  few_chunk<W, T>(p, count, ahead, inputs, sums, d);
}

// The sums of sixteen blocks for T tokens, scaled by d of the weights.
template <int T>
INFER_SIMD void store_values(const I (*sums)[T], F scale, float* values, int64_t value_stride) {
#pragma GCC unroll 4
  for (int t = 0; t < T; ++t) {
    I quarters[4];
    for (int g = 0; g < 4; ++g) {
      const I four[4] = {sums[4 * g][t], sums[4 * g + 1][t], sums[4 * g + 2][t], sums[4 * g + 3][t]};
      quarters[g] = i_sum_four(four);
    }
    f_store(values + t * value_stride, f_mul(f_from_int(i_sum_quarters(quarters)), scale));
  }
}

// At most T tokens; GEMV where T is 1.
template <int T, typename Format>
INFER_OUTLINE void few_walk(const MatmulArgs& a, const Format& format) {
  static_assert(T <= kMostInOrderTokens);
  const auto* x = static_cast<const Activation256*>(a.x);
  const int64_t blocks = a.k / 256, value_stride = 16 * blocks + 16;
  auto* first = reinterpret_cast<uint8_t*>(a.scratch);  // [blocks][T] inputs
  uint8_t* end = first;
  for (int64_t b = 0; b < blocks; ++b) {
    for (int t = 0; t < T; ++t, end += format.input_bytes) format.arrange(x[b * a.x_stride + t].q, end);
  }
  float* values = reinterpret_cast<float*>(end);  // [T][value_stride]
  I sums[16][T];
  alignas(64) uint16_t d[16] = {};
  for (int i = 0; i < 16; ++i) {
    for (int t = 0; t < T; ++t) sums[i][t] = i_zero();
  }
  for (int64_t row = a.row_begin; row < a.row_end; row += 16) {
    const int rows = a.row_end - row < 16 ? static_cast<int>(a.row_end - row) : 16;
    const uint8_t* p = a.weight + row * a.row_bytes;
    FewInputs inputs{first, end, first};
    for (int64_t c = 0; c < rows * blocks; c += 16, p += 16 * format.bytes) {
      const int64_t left = rows * blocks - c;
      format.chunk(p, left < 16 ? static_cast<int>(left) : 16, in_stream(a, p + kStreamDistance), inputs, sums, d);
      store_values<T>(sums, f_mul(f_load_f16(d), f_set1(format.unit)), values + c, value_stride);
    }
#pragma GCC unroll 1
    for (int t = 0; t < T; ++t) {
      const F sum = sum_of_values(values + t * value_stride, blocks, x + t, a.x_stride);
      if (t < a.n_tokens) f_store_first(a.out[t] + row, sum, rows);
    }
  }
}
template <typename W, int T>
void few_blocks(const MatmulArgs& a) {
  using Direct = FewDirect<W, T>;
  if constexpr (T == 1) few_walk<T>(a, Direct{});
  else few_walk<T>(a, FewCalls<T>{W::kUnit, W::kBytes, Direct::input_bytes, Direct::arrange, call_chunk<W, T>});
}
