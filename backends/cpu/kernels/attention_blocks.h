// The parts of attention that depend on the types of keys and values: scores of the 32 tokens of a block, and weighted
// sums of values. A block holds for each KV head the keys as [key_dim][32 tokens] and the values as
// [32 tokens][value_dim], so that the lanes of scores are tokens and the lanes of outputs are dimensions. Quantized
// keys have for every 32 dimensions the scales (and the minima) as F16 [32 tokens], then byte i of the tokens' blocks
// as [bytes][32 tokens], so that no byte is shared by two tokens; quantized values are plain blocks. Both are used at
// their exact value, with the same order of additions as floats. Rows of a tile are the (token, head) pairs that share
// a KV head; no result depends on which rows share a tile. Included inside an anonymous namespace after floats.h,
// gemm_float.h and cache_codes.h.
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

// The functions that depend on the type of keys or values.
using ScoresFunction = void (*)(const AttentionArgs&, const AttentionRow*, const float* queries, int position,
                                float* scores, Ahead ahead);
using ValuesFunction = void (*)(const AttentionArgs&, const float* weights, int from, int to, float* o, int o_stride,
                                bool fetch);
template <int R>
ScoresFunction scores_function(DataType type, bool latent);
template <int R>
ValuesFunction values_function(DataType type);

// The scratch memory of a group of rows: merged outputs and queries of each row, and the work space of one tile.
struct AttentionScratch {
  int padded_dim, query_dim;
  float *weights, *cut;  // of a tile: [R][256], [R][padded_dim]
  float* merged;         // [kMaxAttentionRows][padded_dim]
  float* queries;        // [kMaxAttentionRows / R], each [key_dim][R], or latent [R][query_dim]
  float* decoded;        // decoded_floats()
  INFER_SIMD explicit AttentionScratch(const AttentionArgs& a)
      : padded_dim((a.value_dim + 15) / 16 * 16),
        query_dim((a.key_dim + 15) / 16 * 16),
        weights(a.scratch),
        cut(weights + kMaxQueryTile * kAttentionSplit),
        merged(cut + kMaxQueryTile * padded_dim),
        queries(merged + kMaxAttentionRows * padded_dim),
        decoded(queries + kMaxAttentionRows * query_dim) {}
};

INFER_SIMD void prefetch_block(const AttentionArgs& a, int position, int64_t offset, int64_t bytes) {
  const uint8_t* p = cache_at(a, position, offset);
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i, 0, 2);
}

// Arguments for the kernels of F32 that find one decoded block at any position.
INFER_SIMD AttentionArgs in_floats(const AttentionArgs& a, const float* decoded) {
  AttentionArgs floats = a;
  floats.key_type = floats.value_type = DataType::kF32;
  floats.cache = reinterpret_cast<const uint8_t*>(decoded);
  floats.block_bytes = floats.head_key_offset = floats.head_value_offset = 0;
  return floats;
}

// Decodes the keys of a block as the kernels of F32 expect them.
INFER_SIMD void decode_block_keys(const AttentionArgs& a, int position, float* to) {
  const PackedKernels& type = kPackedKernels[packed_cache_type(a.key_type)];
  const uint8_t* keys = cache_at(a, position, a.head_key_offset);
  if (a.latent) type.rows(keys, kBlockTokens, a.key_dim, a.key_dim, to);
  else type.keys(keys, a.key_dim, to);
}

template <int R>
INFER_OUTLINE void decoded_scores(const AttentionArgs& a, const AttentionRow* rows, const float* queries, int position,
                                  float* scores, Ahead ahead) {
  float* decoded = AttentionScratch(a).decoded;
  decode_block_keys(a, position, decoded);
  scores_function<R>(DataType::kF32, a.latent)(in_floats(a, decoded), rows, queries, position, scores, ahead);
}

template <int R>
INFER_OUTLINE void decoded_values(const AttentionArgs& a, const float* weights, int from, int to, float* o,
                                  int o_stride, bool fetch) {
  const PackedKernels& type = kPackedKernels[packed_cache_type(a.value_type)];
  const int row = a.latent ? a.key_dim : a.value_dim;
  float* decoded = AttentionScratch(a).decoded;
  const AttentionArgs floats = in_floats(a, decoded);
  for (int p = from; p < to;) {
    const int stop = (p / kBlockTokens + 1) * kBlockTokens < to ? (p / kBlockTokens + 1) * kBlockTokens : to;
    const int slot = p % kBlockTokens;
    if (fetch && p + kAttentionSplit < a.sequence_length) {
      prefetch_block(a, p + kAttentionSplit, a.head_key_offset, a.key_bytes);
    }
    type.rows(cache_at(a, p, a.head_value_offset + slot * (row / kBlock32) * int64_t{type.block_bytes}), stop - p, row,
              a.value_dim, decoded + slot * row);
    values_function<R>(DataType::kF32)(floats, weights, p, stop, o, o_stride, false);
    p = stop;
  }
}

template <int R>
ScoresFunction scores_function(DataType type, bool latent) {
  if (packed_cache_type(type) >= 0) return decoded_scores<R>;
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
  if (packed_cache_type(type) >= 0) return decoded_values<R>;
  return type == DataType::kF16    ? add_all_values<FloatValues<LoadF16>, R>
         : type == DataType::kBF16 ? add_all_values<FloatValues<LoadBF16>, R>
         : type == DataType::kQ8_0 ? add_all_values<QuantizedValues<CodesQ8>, R>
         : type == DataType::kQ4_0 ? add_all_values<QuantizedValues<CodesQ4>, R>
                                   : add_all_values<FloatValues<LoadF32>, R>;
}
