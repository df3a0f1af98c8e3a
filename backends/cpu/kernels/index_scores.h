// Scores of index keys, which are stored as in a latent cache: the dot products of every head's query with the 32 keys
// of a block, as in latent attention, or their sum over the heads in order. Included inside an anonymous namespace
// after attention.h.

void index_scores(const IndexScoresArgs& a) {
  const AttentionParams plain;  // no scaling and no mask
  const int32_t table = 0;
  AttentionArgs keys;
  keys.params = &plain;
  keys.key_dim = a.key_dim;
  keys.key_type = a.type;
  keys.cache = a.block;
  keys.block_bytes = keys.head_key_offset = 0;
  keys.table = &table;
  keys.latent = true;
  if (packed_cache_type(a.type) >= 0) {
    decode_block_keys(keys, 0, a.scratch);
    keys = in_floats(keys, a.scratch);
  }
  AttentionRow rows[kMaxQueryTile];
  for (AttentionRow& row : rows) {
    row.slope = 0;
    row.begin = row.position = 0;
    row.end = kBlockTokens;
  }
  const int padded = (a.key_dim + 15) / 16 * 16;
  float dots[kMaxQueryTile * kAttentionSplit];
  F sums[2] = {f_zero(), f_zero()};
  for_tiles(a.heads, [&]<int R>(int head) {
    scores_function<R>(keys.key_type, true)(keys, rows, a.queries + int64_t{head} * padded, 0, dots, Ahead{nullptr, 0});
    for (int r = 0; r < R; ++r) {
      const F weight = f_set1(a.weights ? a.weights[head + r] : 1);
      for (int h = 0; h < 2; ++h) {
        const F dot = f_load(dots + r * kAttentionSplit + 16 * h);
        if (a.sum_heads) sums[h] = f_fma(f_max(dot, f_zero()), weight, sums[h]);
        else f_store(a.scores + (head + r) * a.scores_stride + 16 * h, dot);
      }
    }
  });
  for (int h = 0; a.sum_heads && h < 2; ++h) f_store(a.scores + 16 * h, sums[h]);
}
