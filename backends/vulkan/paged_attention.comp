#version 450
#extension GL_GOOGLE_include_directive : require
// Attention to keys and values: see glsl/attention.glsl. -DSPARSE: sparse_attention.

#include "glsl/common.glsl"
#include "glsl/math.glsl"
#include "glsl/cache.glsl"
layout(constant_id = 4) const uint kMostKeyDim = 64;  // largest key_dim
#include "glsl/attention.glsl"

shared float queries[kRows * kMostKeyDim];  // [kRows, key_dim]
shared uint value_at[kSplit];               // first word of the value of each entry of the split
uint key_row, value_row;                    // words per token and KV head

void start_run() {
  key_row = row_words(key_type(), push.key_dim);
  value_row = row_words(value_type(), push.value_dim);
  for (uint i = gl_LocalInvocationID.x; i < kRows * push.key_dim; i += kLanes) {
    const uint r = i / push.key_dim;
    queries[i] = exists(r) ? q_values[query_at(r) + i % push.key_dim] : 0.0;
  }
}

// Adds the dot products of all rows with the key at word `at`, whose words are kBlockTokens apart.
void add_scores(uint at, inout float score[kRows]) {
  if (key_type() == kF32) {
    for (uint i = 0u; i < push.key_dim; ++i) {
      const float key = uintBitsToFloat(cache_words[at + i * kBlockTokens]);
      for (uint r = 0u; r < kRows; ++r) {
        precise const float sum = fma(queries[r * push.key_dim + i], key, score[r]);
        score[r] = sum;
      }
    }
  } else if (key_type() == kF16 || key_type() == kBF16) {
    for (uint w = 0u; w < (push.key_dim + 1u) / 2u; ++w) {
      const uint word = cache_words[at + w * kBlockTokens];
      const vec2 key = key_type() == kF16 ? unpackHalf2x16(word)
                                        : vec2(uintBitsToFloat(word << 16), uintBitsToFloat(word & 0xffff0000u));
      for (uint r = 0u; r < kRows; ++r) {
        precise float sum = fma(queries[r * push.key_dim + 2u * w], key.x, score[r]);
        if (2u * w + 1u < push.key_dim) sum = fma(queries[r * push.key_dim + 2u * w + 1u], key.y, sum);
        score[r] = sum;
      }
    }
  } else {
    for (uint b = 0u; b < push.key_dim / 32u; ++b) {
      const uint block = at + b * unit_words(key_type()) * kBlockTokens;
      const Shared unit = LOAD_SHARED(key_type(), cache_words, block, kBlockTokens);
      for (uint w = 0u; w < code_words(key_type()); ++w) {
        const uint word = cache_words[block + w * kBlockTokens];
        for (uint i = 0u; i < 4u; ++i) {
          const uint in_unit = 4u * w + i, dim = b * 32u + in_unit;
          const float key = quantized_value(key_type(), word, unit, in_unit);
          for (uint r = 0u; r < kRows; ++r) {
            precise const float sum = fma(queries[r * push.key_dim + dim], key, score[r]);
            score[r] = sum;
          }
          if (key_type() == kQ8_0) continue;
          const float high = quantized_value(key_type(), word, unit, in_unit + 16u);
          for (uint r = 0u; r < kRows; ++r) {
            precise const float sum = fma(queries[r * push.key_dim + dim + 16u], high, score[r]);
            score[r] = sum;
          }
        }
      }
    }
  }
}

// Dimension `dim` of the value whose words begin at `at`.
float load_value(uint at, uint dim) {
  Shared unit = kNothingShared;
  if (is_quantized(value_type())) unit = LOAD_SHARED(value_type(), cache_words, at + unit_of(value_type(), dim), 1u);
  return value_in(value_type(), cache_words[at + word_of(value_type(), dim)], unit, dim);
}

// The cache block with this index in the pool.
uint block_at(uint id) { return push.cache_at + id * push.kv_heads * kBlockTokens * (key_row + value_row); }

void score_split(uint split, uint first, uint last) {
  const uint values_at = push.kv_heads * key_row * kBlockTokens + run.kv_head * value_row * kBlockTokens;
  for (uint i = gl_LocalInvocationID.x; i < kSplit; i += kLanes) {
    const uint p = split * kSplit + i;
    float score[kRows];
    for (uint r = 0u; r < kRows; ++r) score[r] = 0.0;
    const bool inside = p >= first && p < last;
    if (inside) {
      const uvec2 place = place_of(p);
      value_at[i] = block_at(place.x) + values_at + place.y * value_row;
      add_scores(block_at(place.x) + run.kv_head * key_row * kBlockTokens + place.y, score);
    }
    for (uint r = 0u; r < kRows; ++r) weights[r * kSplit + i] = masked_score(r, p, inside, score[r]);
  }
}

void merge_values(uint first, uint last) {
  for (uint d = 0u; d < kDims; ++d) {
    const uint dim = d * kLanes + gl_LocalInvocationID.x;
    if (dim >= push.value_dim) continue;
    float sum[kRows];
    for (uint r = 0u; r < kRows; ++r) sum[r] = 0.0;
    for (uint p = first; p < last; ++p) {
      const float value = load_value(value_at[p % kSplit], dim);
      for (uint r = 0u; r < kRows; ++r) {
        const float w = weights[r * kSplit + p % kSplit];
        precise const float more = fma(w, value, sum[r]);
        if (w != 0.0) sum[r] = more;
      }
    }
    for (uint r = 0u; r < kRows; ++r) merge_sum(r, d, sum[r]);
  }
}
