// Attention over a paged cache. A block holds for each KV head the keys as [key_dim][32 tokens] and the values as
// [32 tokens][value_dim], so that the lanes of scores are tokens and the lanes of outputs are dimensions. Quantized
// keys have for every 32 dimensions the scales as F16 [32 tokens], then byte i of the tokens' blocks as
// [bytes][32 tokens], so that no byte is shared by two tokens; quantized values are plain blocks. Both are used at
// their exact value, scale times code, with the same order of additions as floats. The context is divided into cuts of
// 256 absolute positions; every cut has its own softmax, and cuts are merged in ascending order. Rows of a tile are the
// (token, head) pairs that share a KV head; no result depends on which rows share a tile. Included inside an anonymous
// namespace after floats.h and gemm_float.h.
//
// A latent cache has keys only, as [32 tokens][key_dim] in plain blocks: a key's first dimensions are its value too.
// The lanes of its scores are dimensions, 16 partial sums for each token.

struct AttentionRow {
  float *out, *log_sum;
  float slope, sink;
  int position, begin, end;  // visible positions [begin, end)
  float maximum, total;      // of the merged cuts so far
  bool started;
};

// The positions that a token sees are [first_visible, end_visible); the sequence has `length` so far.
INFER_SIMD int first_visible(const AttentionParams& p, int position) {
  if (p.window == 0) return 0;
  if (p.chunked) return position / p.window * p.window;
  const int before = p.causal ? p.window - 1 : p.window / 2;
  return position > before ? position - before : 0;
}
INFER_SIMD int end_visible(const AttentionParams& p, int position, int length) {
  if (p.causal) return position + 1;
  const int after = p.window / 2;
  return p.window == 0 || p.chunked || length - position <= after ? length : position + after + 1;
}

INFER_SIMD const uint8_t* cache_at(const AttentionArgs& a, int position, int64_t offset) {
  return a.cache + a.table[position / kBlockTokens] * a.block_bytes + offset;
}

// Memory to prefetch gradually: `step` bytes at each of many steps; 0 prefetches nothing.
struct Ahead {
  const uint8_t* at;
  int64_t step;
  INFER_SIMD void fetch() {
    for (int64_t i = 0; i < step; i += 64) __builtin_prefetch(at + i, 0, 2);
    at += step;
  }
};

template <typename T>
INFER_SIMD I load_bytes(const T* p) {
  int32_t lanes[16];
  for (int i = 0; i < 16; ++i) lanes[i] = p[i];
  return i_load(lanes);
}

// Codes of 16 lanes. Q8_0: a byte each. Q4_0: a nibble each; low nibbles are the first 16 dimensions of a block.
struct CodesQ8 {
  static constexpr int kBytes = 32;  // of a block, after its scale
  static INFER_SIMD F load(const uint8_t* p) { return f_from_int(load_bytes(reinterpret_cast<const int8_t*>(p))); }
  static INFER_SIMD F of_dimension(const uint8_t* bytes, int dim) { return load(bytes + kBlockTokens * dim); }
  template <int Half>
  static INFER_SIMD F of_half(const uint8_t* bytes) {
    return load(bytes + 16 * Half);
  }
};
struct CodesQ4 {
  static constexpr int kBytes = 16;
  template <int Shift>
  static INFER_SIMD F load(const uint8_t* p) {
    return f_from_int(i_sub(i_and(i_sar<Shift>(load_bytes(p)), i_set1(15)), i_set1(8)));
  }
  static INFER_SIMD F of_dimension(const uint8_t* bytes, int dim) {
    return dim < 16 ? load<0>(bytes + kBlockTokens * dim) : load<4>(bytes + kBlockTokens * (dim - 16));
  }
  template <int Half>
  static INFER_SIMD F of_half(const uint8_t* bytes) {
    return load<4 * Half>(bytes);
  }
};

// The keys of 32 tokens in one head and block, dimensions [first, first + 32).
template <typename L>
struct FloatKeys {
  const typename L::Element* keys;
  INFER_SIMD FloatKeys(const uint8_t* head, int first)
      : keys(reinterpret_cast<const typename L::Element*>(head) + int64_t{kBlockTokens} * first) {}
  INFER_SIMD F load(int dim, int half) const { return L::load(keys + kBlockTokens * dim + 16 * half); }
};
template <typename Codes>
struct QuantizedKeys {
  const uint8_t* bytes;
  F scales[2];
  INFER_SIMD QuantizedKeys(const uint8_t* head, int first) {
    const uint8_t* group = head + int64_t{first / 32} * kBlockTokens * (2 + Codes::kBytes);
    const auto* d = reinterpret_cast<const uint16_t*>(group);
    for (int h = 0; h < 2; ++h) scales[h] = f_load_f16(d + 16 * h);
    bytes = group + 2 * kBlockTokens;
  }
  INFER_SIMD F load(int dim, int half) const {
    return f_mul(scales[half], Codes::of_dimension(bytes + 16 * half, dim));
  }
};

INFER_SIMD F lane_numbers() {
  alignas(64) const float lanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return f_load(lanes);
}

// Scales and masks the dot products of a row with n tokens, from lane `first_lane` of the block at `position` on, and
// writes them to their places in scores[256]. Outlined, because it is longer than the loops that compute the sums.
INFER_OUTLINE void finish_scores(const AttentionArgs& a, const AttentionRow& row, const float* sums, int position,
                                 int first_lane, int n, float* scores) {
  const F lowest = f_set1(-__builtin_inff());
  for (int at = first_lane; at < first_lane + n; at += 16, sums += 16) {
    F s = f_mul(f_load(sums), f_set1(a.params->scale));
    const float cap = a.params->softcap;
    if (cap > 0) s = f_mul(tanh_lanes(f_div(s, f_set1(cap))), f_set1(cap));
    const F lane = f_add(lane_numbers(), f_set1(static_cast<float>(at)));  // relative to `position`
    if (row.slope != 0) {
      const F distance = f_sub(f_set1(static_cast<float>(row.position - position)), lane);
      const F magnitude = f_max(distance, f_sub(f_zero(), distance));
      s = f_fnma(magnitude, f_set1(row.slope), s);
    }
    s = f_select_less(lane, f_set1(static_cast<float>(row.end - position)), s, lowest);
    s = f_select_less(lane, f_set1(static_cast<float>(row.begin - position)), lowest, s);
    f_store(scores + position % kAttentionSplit + at, s);
  }
}

// Writes the masked scores of R rows with the 32 tokens from `position` on to their places in scores[r][256]. `queries`
// is [key_dim][R]. `ahead` is prefetched in as many steps as keys have dimensions.
template <typename K, int R>
INFER_OUTLINE void block_scores(const AttentionArgs& a, const AttentionRow* rows, const float* queries, int position,
                                float* scores, Ahead ahead) {
  const uint8_t* head = cache_at(a, position, a.head_key_offset);
  for (int half = 0; half < 2; half += kTileVectors) {
    F acc[R][kTileVectors];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int h = 0; h < kTileVectors; ++h) acc[r][h] = f_zero();
    }
    for (int first = 0; first < a.key_dim; first += 32) {
      const K keys(head, first);
      const int count = a.key_dim - first < 32 ? a.key_dim - first : 32;
      for (int d = 0; d < count; ++d) {
        F k[kTileVectors];
#pragma GCC unroll 2
        for (int h = 0; h < kTileVectors; ++h) k[h] = keys.load(d, half + h);
        ahead.fetch();
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          const F q = f_set1(queries[(first + d) * R + r]);
#pragma GCC unroll 2
          for (int h = 0; h < kTileVectors; ++h) acc[r][h] = f_fma(k[h], q, acc[r][h]);
        }
      }
    }
    ahead.step = 0;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      float sums[16 * kTileVectors];
#pragma GCC unroll 2
      for (int h = 0; h < kTileVectors; ++h) f_store(sums + 16 * h, acc[r][h]);
      finish_scores(a, rows[r], sums, position, 16 * half, 16 * kTileVectors, scores + r * kAttentionSplit);
    }
  }
}

// Loads C vectors of a token's value from dimension `dim` on, a multiple of 16 * C. If C is 1, `count` dimensions
// exist.
template <typename L>
struct FloatValues {
  static INFER_SIMD int64_t row_bytes(int n) { return static_cast<int64_t>(sizeof(typename L::Element)) * n; }
  template <int C>
  static INFER_SIMD void load(const uint8_t* row, int dim, int count, F* v) {
    const auto* p = reinterpret_cast<const typename L::Element*>(row) + dim;
    if (C > 1 || count == 16) {
      for (int c = 0; c < C; ++c) v[c] = L::load(p + 16 * c);
      return;
    }
    typename L::Element part[16] = {};
    for (int i = 0; i < count; ++i) part[i] = p[i];
    v[0] = L::load(part);
  }
};
template <typename Codes>
struct QuantizedValues {
  static constexpr int kBlockBytes = 2 + Codes::kBytes;
  static INFER_SIMD int64_t row_bytes(int n) { return static_cast<int64_t>(n / 32) * kBlockBytes; }
  template <int C>
  static INFER_SIMD void load(const uint8_t* row, int dim, int, F* v) {
    const uint8_t* block = row + static_cast<int64_t>(dim / 32) * kBlockBytes;
    uint16_t scales[16];
    for (int i = 0; i < 16; ++i) __builtin_memcpy(scales + i, block, sizeof(uint16_t));
    const F scale = f_load_f16(scales);
    if constexpr (C == 2) {
      v[0] = f_mul(scale, Codes::template of_half<0>(block + 2));
      v[1] = f_mul(scale, Codes::template of_half<1>(block + 2));
    } else {
      const F low = Codes::template of_half<0>(block + 2), high = Codes::template of_half<1>(block + 2);
      v[0] = f_mul(scale, dim % 32 == 0 ? low : high);
    }
  }
};

// block_scores() of a latent cache: `queries` is [R][key_dim rounded up to 16], zero-padded.
template <typename V, int R>
INFER_OUTLINE void latent_scores(const AttentionArgs& a, const AttentionRow* rows, const float* queries, int position,
                                 float* scores, Ahead) {
  const uint8_t* block = cache_at(a, position, a.head_key_offset);
  const int64_t row_bytes = V::row_bytes(a.key_dim), padded = (a.key_dim + 15) / 16 * 16;
  float dots[R][kBlockTokens];
  for (int t = 0; t < kBlockTokens; t += kTileVectors) {
    F acc[R][kTileVectors];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int h = 0; h < kTileVectors; ++h) acc[r][h] = f_zero();
    }
    for (int dim = 0; dim < a.key_dim; dim += 16) {
      F k[kTileVectors];
#pragma GCC unroll 2
      for (int h = 0; h < kTileVectors; ++h) {
        V::template load<1>(block + (t + h) * row_bytes, dim, a.key_dim - dim < 16 ? a.key_dim - dim : 16, &k[h]);
      }
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const F q = f_load(queries + r * padded + dim);
#pragma GCC unroll 2
        for (int h = 0; h < kTileVectors; ++h) acc[r][h] = f_fma(k[h], q, acc[r][h]);
      }
    }
    for (int r = 0; r < R; ++r) {
      for (int h = 0; h < kTileVectors; ++h) dots[r][t + h] = f_reduce_add(acc[r][h]);
    }
  }
  for (int r = 0; r < R; ++r) {
    finish_scores(a, rows[r], dots[r], position, 0, kBlockTokens, scores + r * kAttentionSplit);
  }
}

// Bytes from a token's value to the next one's.
template <typename V>
INFER_SIMD int64_t value_row_bytes(const AttentionArgs& a) {
  return V::row_bytes(a.latent ? a.key_dim : a.value_dim);
}

// o[r] += sum over positions [from, to) of weight[r][p] * value[p], for C vectors of 16 dimensions from `dim` on. With
// `fetch`, prefetches the share of the next cut's keys that corresponds to these dimensions.
template <typename V, int R, int C>
INFER_SIMD void add_values(const AttentionArgs& a, const float* weights, int from, int to, int dim, int count, float* o,
                           int o_stride, bool fetch) {
  const int64_t key_step = a.key_bytes / kBlockTokens * 16 * C / ((a.value_dim + 15) / 16 * 16);
  const int64_t row_bytes = value_row_bytes<V>(a);
  F acc[R][C];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int c = 0; c < C; ++c) acc[r][c] = f_load(o + r * o_stride + dim + 16 * c);
  }
  for (int p = from; p < to;) {
    const uint8_t* block = cache_at(a, p, a.head_value_offset);
    const int stop = (p / kBlockTokens + 1) * kBlockTokens < to ? (p / kBlockTokens + 1) * kBlockTokens : to;
    Ahead ahead = {nullptr, 0};
    if (fetch && p + kAttentionSplit < a.sequence_length) {
      const int64_t part = key_step * kBlockTokens / (16 * C) * dim;  // prefetched with the preceding dimensions
      ahead = {cache_at(a, p + kAttentionSplit, a.head_key_offset + part), key_step};
    }
    for (; p < stop; ++p) {
      ahead.fetch();
      F v[C];
      V::template load<C>(block + p % kBlockTokens * row_bytes, dim, count, v);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const F w = f_set1(weights[r * kAttentionSplit + p % kAttentionSplit]);
#pragma GCC unroll 2
        for (int c = 0; c < C; ++c) acc[r][c] = f_fma(v[c], w, acc[r][c]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int c = 0; c < C; ++c) f_store(o + r * o_stride + dim + 16 * c, acc[r][c]);
  }
}

template <typename V, int R>
INFER_OUTLINE void add_all_values(const AttentionArgs& a, const float* weights, int from, int to, float* o,
                                  int o_stride, bool fetch) {
  int dim = 0;
  if (kTileVectors == 2) {
    for (; dim + 32 <= a.value_dim; dim += 32) add_values<V, R, 2>(a, weights, from, to, dim, 16, o, o_stride, fetch);
  }
  for (; dim < a.value_dim; dim += 16) {
    add_values<V, R, 1>(a, weights, from, to, dim, a.value_dim - dim < 16 ? a.value_dim - dim : 16, o, o_stride, fetch);
  }
}

INFER_SIMD float exp_scalar(float x) {
  float lanes[16];
  f_store(lanes, exp_lanes(f_set1(x)));
  return lanes[0];
}

// Merges a cut (maximum m, sum l, outputs o) into the row's state (outputs `merged`).
INFER_SIMD void merge_cut(AttentionRow& row, float m, float l, const float* o, float* merged, int padded_dim) {
  if (!row.started) {
    row.started = true;
    row.maximum = m;
    row.total = l;
    for (int i = 0; i < padded_dim; i += 16) f_store(merged + i, f_load(o + i));
    return;
  }
  const float larger = m > row.maximum ? m : row.maximum;
  const float old_factor = exp_scalar(row.maximum - larger), new_factor = exp_scalar(m - larger);
  row.maximum = larger;
  row.total = __builtin_fmaf(row.total, old_factor, l * new_factor);
  for (int i = 0; i < padded_dim; i += 16) {
    f_store(merged + i, f_fma(f_load(merged + i), f_set1(old_factor), f_mul(f_load(o + i), f_set1(new_factor))));
  }
}

// The functions that depend on the type of keys or values.
using ScoresFunction = void (*)(const AttentionArgs&, const AttentionRow*, const float* queries, int position,
                                float* scores, Ahead ahead);
using ValuesFunction = void (*)(const AttentionArgs&, const float* weights, int from, int to, float* o, int o_stride,
                                bool fetch);
template <int R>
ScoresFunction scores_function(DataType type, bool latent) {
  if (latent) {
    return type == DataType::kF16    ? latent_scores<FloatValues<LoadF16>, R>
           : type == DataType::kBF16 ? latent_scores<FloatValues<LoadBF16>, R>
           : type == DataType::kQ8_0 ? latent_scores<QuantizedValues<CodesQ8>, R>
           : type == DataType::kQ4_0 ? latent_scores<QuantizedValues<CodesQ4>, R>
                                     : latent_scores<FloatValues<LoadF32>, R>;
  }
  return type == DataType::kF16    ? block_scores<FloatKeys<LoadF16>, R>
         : type == DataType::kBF16 ? block_scores<FloatKeys<LoadBF16>, R>
         : type == DataType::kQ8_0 ? block_scores<QuantizedKeys<CodesQ8>, R>
         : type == DataType::kQ4_0 ? block_scores<QuantizedKeys<CodesQ4>, R>
                                   : block_scores<FloatKeys<LoadF32>, R>;
}
template <int R>
ValuesFunction values_function(DataType type) {
  return type == DataType::kF16    ? add_all_values<FloatValues<LoadF16>, R>
         : type == DataType::kBF16 ? add_all_values<FloatValues<LoadBF16>, R>
         : type == DataType::kQ8_0 ? add_all_values<QuantizedValues<CodesQ8>, R>
         : type == DataType::kQ4_0 ? add_all_values<QuantizedValues<CodesQ4>, R>
                                   : add_all_values<FloatValues<LoadF32>, R>;
}

// The scratch memory of a group of rows: merged outputs and queries of each row, and the work space of one tile.
struct AttentionScratch {
  int padded_dim, query_dim;
  float *weights, *cut;  // of a tile: [R][256], [R][padded_dim]
  float* merged;         // [kMaxAttentionRows][padded_dim]
  float* queries;        // [kMaxAttentionRows / R], each [key_dim][R], or latent [R][query_dim]
  INFER_SIMD explicit AttentionScratch(const AttentionArgs& a)
      : padded_dim((a.value_dim + 15) / 16 * 16),
        query_dim((a.key_dim + 15) / 16 * 16),
        weights(a.scratch),
        cut(weights + kMaxQueryTile * kAttentionSplit),
        merged(cut + kMaxQueryTile * padded_dim),
        queries(merged + kMaxAttentionRows * padded_dim) {}
};

INFER_SIMD void prefetch_block(const AttentionArgs& a, int position, int64_t offset, int64_t bytes) {
  const uint8_t* p = cache_at(a, position, offset);
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i, 0, 2);
}

// Adds the cut that begins at `start` to rows [first, first + R) of the group.
template <int R>
INFER_OUTLINE void attend_cut(const AttentionArgs& a, const AttentionScratch& scratch, AttentionRow* group, int first,
                              int start) {
  const ScoresFunction scores = scores_function<R>(a.key_type, a.latent);
  const ValuesFunction all_values = values_function<R>(a.value_type), one_value = values_function<1>(a.value_type);
  const int padded_dim = scratch.padded_dim;
  AttentionRow* rows = group + first;
  float *weights = scratch.weights, *cut = scratch.cut, *merged = scratch.merged + first * padded_dim;
  const float* queries = scratch.queries + first * scratch.query_dim;
  int begin = rows[0].begin, end = rows[0].end;
  for (int r = 1; r < R; ++r) {
    begin = rows[r].begin < begin ? rows[r].begin : begin;
    end = rows[r].end > end ? rows[r].end : end;
  }
  const int stop = start + kAttentionSplit < end ? start + kAttentionSplit : end;
  // The first rows prefetch for all: the values of the cut while computing its scores, and the keys of the next cut
  // while adding values. The keys of the first cut are not prefetched.
  const bool fetch = first == 0;
  const int from_block = begin > start ? begin / kBlockTokens * kBlockTokens : start;
  for (int p = from_block; p < stop; p += kBlockTokens) {
    if (fetch && start <= begin && p + kBlockTokens < stop) {
      prefetch_block(a, p + kBlockTokens, a.head_key_offset, a.key_bytes);
    }
    const Ahead ahead = {fetch ? cache_at(a, p, a.head_value_offset) : nullptr, fetch ? a.value_bytes / a.key_dim : 0};
    scores(a, rows, queries, p, weights, ahead);
  }

  // The positions that all rows see, and on both sides those that only some rows see.
  int common_from = start, common_to = stop;
  int from[R], to[R];
  float m[R], l[R];
  for (int r = 0; r < R; ++r) {
    from[r] = rows[r].begin > start ? rows[r].begin : start;
    to[r] = rows[r].end < stop ? rows[r].end : stop;
    if (to[r] < from[r]) to[r] = from[r];
    common_from = from[r] > common_from ? from[r] : common_from;
    common_to = to[r] < common_to ? to[r] : common_to;
    float* w = weights + r * kAttentionSplit;
    const int low = from[r] % kAttentionSplit / 16 * 16;  // vectors begin at multiples of 16
    const int high = (to[r] - start + 15) / 16 * 16;
    if (to[r] > from[r]) {
      m[r] = max_value(w + low, high - low);
      l[r] = exp_and_sum(w + low, m[r], w + low, high - low);
    }
    for (int i = 0; i < padded_dim; i += 16) f_store(cut + r * padded_dim + i, f_zero());
  }
  if (common_to < common_from) common_to = common_from;
  const auto single = [&](int r, int p, int q) {
    if (p < q) one_value(a, weights + r * kAttentionSplit, p, q, cut + r * padded_dim, padded_dim, false);
  };
  for (int r = 0; r < R; ++r) single(r, from[r], to[r] < common_from ? to[r] : common_from);
  if (common_from < common_to) all_values(a, weights, common_from, common_to, cut, padded_dim, fetch);
  for (int r = 0; r < R; ++r) single(r, from[r] > common_to ? from[r] : common_to, to[r]);
  for (int r = 0; r < R; ++r) {
    if (from[r] < to[r]) merge_cut(rows[r], m[r], l[r], cut + r * padded_dim, merged + r * padded_dim, padded_dim);
  }
}

INFER_SIMD void finish_row(const AttentionArgs& a, const AttentionRow& row, const float* merged) {
  float factor = 1, total = row.total, larger = row.maximum;
  if (a.sinks) {
    larger = row.sink > row.maximum ? row.sink : row.maximum;
    factor = exp_scalar(row.maximum - larger);
    total = __builtin_fmaf(total, factor, exp_scalar(row.sink - larger));
  }
  if (row.log_sum) *row.log_sum = larger + static_cast<float>(portable_log(total));
  for_lanes(row.out, a.value_dim, [&](int64_t i, int) INFER_LAMBDA {
    return f_div(f_mul(f_load(merged + i), f_set1(factor)), f_set1(total));
  });
}

// Calls body.operator()<R>(first) for tiles of R rows that make up `count` rows.
template <typename Body>
INFER_SIMD void for_tiles(int count, const Body& body) {
  int i = 0;
  for (; i + kQueryTile <= count; i += kQueryTile) body.template operator()<kQueryTile>(i);
  for (; i + 2 <= count; i += 2) body.template operator()<2>(i);
  for (; i < count; ++i) body.template operator()<1>(i);
}

void attention(const AttentionArgs& a) {
  AttentionRow rows[kMaxAttentionRows];
  const AttentionScratch scratch(a);
  const int n = a.n_queries * a.heads;
  for (int first = 0; first < n; first += kMaxAttentionRows) {
    const int count = n - first < kMaxAttentionRows ? n - first : kMaxAttentionRows;
    int begin = a.sequence_length, end = 0;
    const auto query_of = [&](int i) {
      return a.query + (first + i) / a.heads * a.query_stride + static_cast<int64_t>((first + i) % a.heads) * a.key_dim;
    };
    for (int i = 0; i < count; ++i) {
      const int query = (first + i) / a.heads, head = (first + i) % a.heads;
      AttentionRow& row = rows[i];
      row.out = a.out + query * a.out_stride + static_cast<int64_t>(head) * a.value_dim;
      row.log_sum = a.log_sums ? a.log_sums + query * a.log_sums_stride + head : nullptr;
      row.slope = a.slopes[head];
      row.sink = a.sinks ? a.sinks[head] : 0;
      row.position = a.position + query;
      row.end = end_visible(*a.params, row.position, a.sequence_length);
      row.begin = first_visible(*a.params, row.position);
      row.started = false;
      row.maximum = row.total = 0;
      begin = row.begin < begin ? row.begin : begin;
      end = row.end > end ? row.end : end;
    }
    for_tiles(count, [&]<int R>(int tile) {
      float* queries = scratch.queries + tile * scratch.query_dim;
      const int row = a.latent ? scratch.query_dim : 1, column = a.latent ? 1 : R;
      for (int r = 0; r < R; ++r) {
        const float* q = query_of(tile + r);
        for (int d = 0; d < a.key_dim; ++d) queries[r * row + d * column] = q[d];
        for (int d = a.key_dim; a.latent && d < scratch.query_dim; ++d) queries[r * row + d] = 0;
      }
    });
    // All rows process a cut while its keys and values are in the CPU's cache.
    for (int start = begin / kAttentionSplit * kAttentionSplit; start < end; start += kAttentionSplit) {
      for_tiles(count, [&]<int R>(int tile) { attend_cut<R>(a, scratch, rows, tile, start); });
    }
    for (int i = 0; i < count; ++i) finish_row(a, rows[i], scratch.merged + i * scratch.padded_dim);
  }
}
