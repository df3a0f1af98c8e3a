// Attention over a paged cache. The context is divided into cuts of 256 absolute positions; every cut has its own
// softmax, and cuts are merged in ascending order. Included inside an anonymous namespace after attention_blocks.h.

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
