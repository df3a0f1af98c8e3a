// Attention over a paged cache. A block holds for each KV head the keys as [key_dim][32 tokens] and the values as
// [32 tokens][value_dim], so that the lanes of scores are tokens and the lanes of outputs are dimensions. The context
// is cut every 256 absolute positions; every cut has its own softmax and they are merged in ascending order. Rows of a
// tile are the (token, head) pairs that share a KV head; no result depends on which rows share a tile. Included inside
// an anonymous namespace after floats.h and products_float.h.

struct AttentionRow {
  const float* query;
  float* out;
  float slope, sink;
  int position, begin, end;  // visible positions [begin, end)
  float maximum, total;      // of the merged cuts so far
  bool started;
};

template <typename L>
INFER_SIMD const typename L::Element* cache_at(const AttentionArgs& a, int position, int64_t offset) {
  const int64_t block = a.table[position / kBlockTokens];
  return reinterpret_cast<const typename L::Element*>(a.cache + block * a.block_bytes + offset);
}

INFER_SIMD F lane_numbers() {
  alignas(64) const float lanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return f_load(lanes);
}

// Scores of R rows with the 32 tokens from `position` on, masked, to their place in scores[r][256].
template <typename K, int R>
INFER_OUTLINE void block_scores(const AttentionArgs& a, const AttentionRow* rows, int position, float* scores) {
  const auto* key = cache_at<K>(a, position, a.head_key_offset);
  F acc[R][2];
  for (int r = 0; r < R; ++r) acc[r][0] = acc[r][1] = f_zero();
  for (int d = 0; d < a.key_dim; ++d) {
    const F k0 = K::load(key + kBlockTokens * d), k1 = K::load(key + kBlockTokens * d + 16);
    for (int r = 0; r < R; ++r) {
      const F q = f_set1(rows[r].query[d]);
      acc[r][0] = f_fma(k0, q, acc[r][0]);
      acc[r][1] = f_fma(k1, q, acc[r][1]);
    }
  }
  const F lowest = f_set1(-__builtin_inff());
  for (int r = 0; r < R; ++r) {
    for (int h = 0; h < 2; ++h) {
      F s = f_mul(acc[r][h], f_set1(a.params->scale));
      const float cap = a.params->softcap;
      if (cap > 0) s = f_mul(tanh_lanes(f_div(s, f_set1(cap))), f_set1(cap));
      const F lane = f_add(lane_numbers(), f_set1(static_cast<float>(16 * h)));  // relative to `position`
      if (rows[r].slope != 0) {
        const F distance = f_sub(f_set1(static_cast<float>(rows[r].position - position)), lane);
        const F magnitude = f_max(distance, f_sub(f_zero(), distance));
        s = f_fnma(magnitude, f_set1(rows[r].slope), s);
      }
      s = f_select_less(lane, f_set1(static_cast<float>(rows[r].end - position)), s, lowest);
      s = f_select_less(lane, f_set1(static_cast<float>(rows[r].begin - position)), lowest, s);
      f_store(scores + r * kAttentionSplit + position % kAttentionSplit + 16 * h, s);
    }
  }
}

template <typename V>
INFER_SIMD F load_value(const typename V::Element* p, int n) {
  if (n == 16) return V::load(p);
  typename V::Element part[16] = {};
  for (int i = 0; i < n; ++i) part[i] = p[i];
  return V::load(part);
}

// o[r] += sum over positions [from, to) of weight[r][p] * value[p], for C vectors of 16 dimensions from `dim` on.
template <typename V, int R, int C>
INFER_SIMD void add_values(const AttentionArgs& a, const float* weights, int from, int to, int dim, int count, float* o,
                           int o_stride) {
  F acc[R][C];
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) acc[r][c] = f_load(o + r * o_stride + dim + 16 * c);
  }
  for (int p = from; p < to;) {
    const auto* block = cache_at<V>(a, p, a.head_value_offset);
    const int stop = (p / kBlockTokens + 1) * kBlockTokens < to ? (p / kBlockTokens + 1) * kBlockTokens : to;
    for (; p < stop; ++p) {
      const auto* value = block + static_cast<int64_t>(p % kBlockTokens) * a.value_dim + dim;
      F v[C];
      for (int c = 0; c < C; ++c) v[c] = load_value<V>(value + 16 * c, C == 1 ? count : 16);
      for (int r = 0; r < R; ++r) {
        const F w = f_set1(weights[r * kAttentionSplit + p % kAttentionSplit]);
        for (int c = 0; c < C; ++c) acc[r][c] = f_fma(v[c], w, acc[r][c]);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) f_store(o + r * o_stride + dim + 16 * c, acc[r][c]);
  }
}

template <typename V, int R>
INFER_OUTLINE void add_all_values(const AttentionArgs& a, const float* weights, int from, int to, float* o,
                                  int o_stride) {
  int dim = 0;
  for (; dim + 32 <= a.value_dim; dim += 32) add_values<V, R, 2>(a, weights, from, to, dim, 16, o, o_stride);
  for (; dim < a.value_dim; dim += 16) {
    add_values<V, R, 1>(a, weights, from, to, dim, a.value_dim - dim < 16 ? a.value_dim - dim : 16, o, o_stride);
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

// The parts that depend on the type of keys or values.
using ScoresFunction = void (*)(const AttentionArgs&, const AttentionRow*, int position, float* scores);
using ValuesFunction = void (*)(const AttentionArgs&, const float* weights, int from, int to, float* o, int o_stride);
template <int R>
ScoresFunction scores_function(DataType type) {
  return type == DataType::kF16    ? block_scores<LoadF16, R>
         : type == DataType::kBF16 ? block_scores<LoadBF16, R>
                                   : block_scores<LoadF32, R>;
}
template <int R>
ValuesFunction values_function(DataType type) {
  return type == DataType::kF16    ? add_all_values<LoadF16, R>
         : type == DataType::kBF16 ? add_all_values<LoadBF16, R>
                                   : add_all_values<LoadF32, R>;
}

template <int R>
INFER_OUTLINE void attend_rows(const AttentionArgs& a, AttentionRow* rows) {
  const ScoresFunction scores = scores_function<R>(a.key_type);
  const ValuesFunction all_values = values_function<R>(a.value_type), one_value = values_function<1>(a.value_type);
  const int padded_dim = (a.value_dim + 15) / 16 * 16;
  float* weights = a.scratch;                  // [R][256]
  float* cut = weights + R * kAttentionSplit;  // [R][padded_dim]
  float* merged = cut + R * padded_dim;        // [R][padded_dim]
  int begin = rows[0].begin, end = rows[0].end;
  for (int r = 1; r < R; ++r) {
    begin = rows[r].begin < begin ? rows[r].begin : begin;
    end = rows[r].end > end ? rows[r].end : end;
  }
  for (int start = begin / kAttentionSplit * kAttentionSplit; start < end; start += kAttentionSplit) {
    const int stop = start + kAttentionSplit < end ? start + kAttentionSplit : end;
    const int first = begin > start ? begin / kBlockTokens * kBlockTokens : start;
    for (int p = first; p < stop; p += kBlockTokens) scores(a, rows, p, weights);

    // The positions all rows see, and the ones only some do, on both sides.
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
      const int low = from[r] % kAttentionSplit / 16 * 16;  // lanes count from a multiple of 16
      const int high = (to[r] - start + 15) / 16 * 16;
      if (to[r] > from[r]) {
        m[r] = max_value(w + low, high - low);
        l[r] = exp_and_sum(w + low, m[r], w + low, high - low);
      }
      for (int i = 0; i < padded_dim; i += 16) f_store(cut + r * padded_dim + i, f_zero());
    }
    if (common_to < common_from) common_to = common_from;
    const auto single = [&](int r, int p, int q) {
      if (p < q) one_value(a, weights + r * kAttentionSplit, p, q, cut + r * padded_dim, padded_dim);
    };
    for (int r = 0; r < R; ++r) single(r, from[r], to[r] < common_from ? to[r] : common_from);
    if (common_from < common_to) all_values(a, weights, common_from, common_to, cut, padded_dim);
    for (int r = 0; r < R; ++r) single(r, from[r] > common_to ? from[r] : common_to, to[r]);
    for (int r = 0; r < R; ++r) {
      if (from[r] < to[r]) merge_cut(rows[r], m[r], l[r], cut + r * padded_dim, merged + r * padded_dim, padded_dim);
    }
  }
  for (int r = 0; r < R; ++r) {
    float factor = 1, total = rows[r].total;
    if (a.sinks) {
      const float larger = rows[r].sink > rows[r].maximum ? rows[r].sink : rows[r].maximum;
      factor = exp_scalar(rows[r].maximum - larger);
      total = __builtin_fmaf(total, factor, exp_scalar(rows[r].sink - larger));
    }
    const float* o = merged + r * padded_dim;
    for_lanes(rows[r].out, a.value_dim,
              [&](int64_t i, int) INFER_LAMBDA { return f_div(f_mul(f_load(o + i), f_set1(factor)), f_set1(total)); });
  }
}

void attention(const AttentionArgs& a) {
  AttentionRow rows[kQueryTile];
  const int n = a.n_queries * a.heads;
  for (int first = 0; first < n; first += kQueryTile) {
    const int count = n - first < kQueryTile ? n - first : kQueryTile;
    for (int i = 0; i < count; ++i) {
      const int query = (first + i) / a.heads, head = (first + i) % a.heads;
      AttentionRow& row = rows[i];
      row.query = a.query + query * a.query_stride + static_cast<int64_t>(head) * a.key_dim;
      row.out = a.out + query * a.out_stride + static_cast<int64_t>(head) * a.value_dim;
      row.slope = a.slopes[head];
      row.sink = a.sinks ? a.sinks[head] : 0;
      row.position = a.position + query;
      row.end = a.params->causal ? row.position + 1 : a.sequence_length;
      row.begin = a.params->window > 0 && row.position >= a.params->window ? row.position - a.params->window + 1 : 0;
      row.started = false;
      row.maximum = row.total = 0;
    }
    int i = 0;
    for (; i + kQueryTile <= count; i += kQueryTile) attend_rows<kQueryTile>(a, rows + i);
    for (; i + 2 <= count; i += 2) attend_rows<2>(a, rows + i);
    for (; i < count; ++i) attend_rows<1>(a, rows + i);
  }
}
