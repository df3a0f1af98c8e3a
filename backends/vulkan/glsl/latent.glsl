// Dot products of queries with keys of a latent cache, one key per lane. Lanes load the words of rows together into
// shared memory, so that each is read once for all queries. The shader defines kRows, kLanes and kLatentRows (a
// multiple of kLanes).

const uint kNoRow = 0xffffffffu;
shared uint row_at[kLatentRows];  // start of each key in the cache; kNoRow if there is none

const uint kStageWords = 9u;   // of a key at a time; odd, so that lanes read from different banks
const uint kStageDims = 32u;   // the most values in them
shared uint stage[kLanes * kStageWords];
shared float query_stage[kRows * kStageDims];

// Defined by the shader: dimension `dim` of query row r.
float query_value(uint r, uint dim);

// Words [from, from + count) of the rows from `first` on, and `dims` values of the queries from `dim` on.
void load_stage(uint first, uint from, uint count, uint dim, uint dims, uint key_dim) {
  const uint lane = gl_LocalInvocationID.x;
  for (uint i = lane; i < kLanes * count; i += kLanes) {
    const uint row = i / count, word = i % count, at = row_at[first + row];
    if (at != kNoRow) stage[row * kStageWords + word] = cache_words[at + from + word];
  }
  for (uint i = lane; i < kRows * dims; i += kLanes) {
    const uint r = i / dims, at = dim + i % dims;
    query_stage[r * kStageDims + i % dims] = at < key_dim ? query_value(r, at) : 0.0;
  }
}

// Adds the products of the staged values, in order. Those from `count` on are zero.
void add_stage(uint type, uint count, inout float products[kRows]) {
  const uint at = gl_LocalInvocationID.x * kStageWords;
  Shared unit = kNothingShared;
  if (is_quantized(type)) unit = LOAD_SHARED(type, stage, at, 1u);
  for (uint i = 0u; i < count; i += 4u) {
    float key[4];
    for (uint j = 0u; j < 4u; ++j) {
      key[j] = i + j < count ? value_in(type, stage[at + word_of(type, i + j)], unit, i + j) : 0.0;
    }
    for (uint r = 0u; r < kRows; ++r) {
      precise float sum = products[r];
      for (uint j = 0u; j < 4u; ++j) sum = fma(query_stage[r * kStageDims + i + j], key[j], sum);
      products[r] = sum;
    }
  }
}

// Adds the dot products of all queries with the key of row_at[first + lane]. All lanes must call it.
void add_products(uint first, uint type, uint key_dim, inout float products[kRows]) {
  const uint words = is_quantized(type) ? unit_words(type) : 8u;
  const uint dims = is_quantized(type) ? 32u : type == kF32 ? 8u : 16u;
  const uint row = row_words(type, key_dim);
  for (uint from = 0u, dim = 0u; from < row; from += words, dim += dims) {
    barrier();
    load_stage(first, from, min(words, row - from), dim, dims, key_dim);
    barrier();
    if (row_at[first + gl_LocalInvocationID.x] != kNoRow) add_stage(type, min(dims, key_dim - dim), products);
  }
}
