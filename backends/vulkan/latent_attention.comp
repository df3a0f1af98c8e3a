#version 450
#extension GL_GOOGLE_include_directive : require
// Attention to a latent cache, where a value is the beginning of its key: see glsl/attention.glsl. The heads of a
// workgroup share each key that is read. -DSPARSE: sparse_attention.

#include "glsl/common.glsl"
#include "glsl/math.glsl"
#include "glsl/cache.glsl"
#include "glsl/attention.glsl"
const uint kLatentRows = kSplit;
#include "glsl/latent.glsl"

shared uint query_rows[kRows];  // start of each query; kNoRow if there is none
float query_value(uint r, uint dim) { return query_rows[r] == kNoRow ? 0.0 : q_values[query_rows[r] + dim]; }

void start_run() {
  const uint lane = gl_LocalInvocationID.x;
  if (lane < kRows) query_rows[lane] = exists(lane) ? query_at(lane) : kNoRow;
}

void find_rows(uint split, uint first, uint last) {
  const uint key_row = row_words(key_type(), push.key_dim), head_words = entries_per_block() * key_row;
  for (uint i = gl_LocalInvocationID.x; i < kSplit; i += kLanes) {
    const uint p = split * kSplit + i;
    row_at[i] = kNoRow;
    if (p < first || p >= last) continue;
    const uvec2 place = place_of(p);
    row_at[i] = push.cache_at + (place.x * push.kv_heads + run.kv_head) * head_words + place.y * key_row;
  }
}

void score_split(uint split, uint first, uint last) {
  find_rows(split, first, last);
  for (uint from = 0u; from < kSplit; from += kLanes) {
    const uint i = from + gl_LocalInvocationID.x, begin = split * kSplit + from, p = split * kSplit + i;
    float product[kRows];
    for (uint r = 0u; r < kRows; ++r) product[r] = 0.0;
    if (begin < last && begin + kLanes > first) add_products(from, key_type(), push.key_dim, product);
    for (uint r = 0u; r < kRows; ++r) weights[r * kSplit + i] = masked_score(r, p, p >= first && p < last, product[r]);
  }
}

float load_value(uint at, uint dim) {
  Shared unit = kNothingShared;
  if (is_quantized(key_type())) unit = LOAD_SHARED(key_type(), cache_words, at + unit_of(key_type(), dim), 1u);
  return value_in(key_type(), cache_words[at + word_of(key_type(), dim)], unit, dim);
}

// Four entries at a time.
void merge_values(uint first, uint last) {
  for (uint d = 0u; d < kDims; ++d) {
    const uint dim = d * kLanes + gl_LocalInvocationID.x;
    if (dim >= push.value_dim) continue;
    float sum[kRows];
    for (uint r = 0u; r < kRows; ++r) sum[r] = 0.0;
    for (uint i = first % kSplit / 4u * 4u; i <= (last - 1u) % kSplit; i += 4u) {
      float value[4];
      for (uint j = 0u; j < 4u; ++j) value[j] = row_at[i + j] == kNoRow ? 0.0 : load_value(row_at[i + j], dim);
      for (uint r = 0u; r < kRows; ++r) {
        for (uint j = 0u; j < 4u; ++j) {
          const float w = weights[r * kSplit + i + j];
          precise const float more = fma(w, value[j], sum[r]);
          if (w != 0.0) sum[r] = more;
        }
      }
    }
    for (uint r = 0u; r < kRows; ++r) merge_sum(r, d, sum[r]);
  }
}
