#version 450
#extension GL_GOOGLE_include_directive : require
// Softmax of the scores of a query with the visible keys, times the values. A workgroup takes one KV head and kRows
// rows: the query heads that share it, of one or several tokens. The context is split every 256 absolute positions. For
// each split the lanes write the scores to shared memory, then each lane sums some dimensions of the values; splits are
// merged in order. A row's result does not depend on the others in its workgroup: masked positions have weight zero and
// are skipped.
//
// chunks > 1: workgroup x takes every chunks-th split and leaves maximum, sum and values for attention_merge.

layout(local_size_x = 128) in;
layout(constant_id = 0) const uint kRows = 8;
layout(constant_id = 1) const uint kFixedKeyType = 1;
layout(constant_id = 2) const uint kFixedValueType = 1;
layout(constant_id = 3) const uint kMostKeyDim = 64;  // largest key_dim
layout(constant_id = 4) const uint kDims = 1;         // dimensions of the values per lane
#include "glsl/common.glsl"
#include "glsl/math.glsl"
#include "glsl/cache.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Q { float q_values[]; };
layout(set = 0, binding = 2, std430) readonly buffer Sinks { float sinks[]; };
layout(set = 0, binding = 3, std430) readonly buffer Cache { uint cache_words[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Out { float out_values[]; };
layout(push_constant) uniform Push {
  uint heads, kv_heads, tile_heads, tile_tokens;  // tile_heads * tile_tokens is at most kRows
  uint q_at, q_stride, sinks_at, cache_at, out_at;
  uint positions_at, sequences_at, lengths_at, table_at, table_stride;
  uint window, alibi_power;  // the largest power of two up to `heads`
  float scale, softcap, alibi_max_bias;
  uint key_dim, value_dim, chunks;
  uint flags;  // bit 0: causal, bit 1: sinks, bit 2: chunked; from bit 8: type of keys, from bit 16: type of values
  uint first_token, last_token;  // this launch computes [first_token, last_token)
} push;
bool is_causal() { return (push.flags & 1u) != 0u; }
bool has_sinks() { return (push.flags & 2u) != 0u; }
bool is_chunked() { return (push.flags & 4u) != 0u; }
// The positions that a token sees are [first_visible, end_visible); the sequence has `length` so far.
uint first_visible(uint position) {
  if (push.window == 0u) return 0u;
  if (is_chunked()) return position / push.window * push.window;
  const uint before = is_causal() ? push.window - 1u : push.window / 2u;
  return position - min(position, before);
}
uint end_visible(uint position, uint length) {
  if (is_causal()) return position + 1u;
  return push.window == 0u || is_chunked() ? length : min(length, position + push.window / 2u + 1u);
}
uint key_type() { return kFixedKeyType == kAnyType ? push.flags >> 8 & 255u : kFixedKeyType; }
uint value_type() { return kFixedValueType == kAnyType ? push.flags >> 16 : kFixedValueType; }

const uint kLanes = 128u, kSplit = 256u, kParts = 16u;
shared float queries[kRows * kMostKeyDim];  // [kRows, key_dim]
shared float weights[kRows * kSplit];
shared float parts[kRows * kParts];

// 2^x, with no error from the integer part of x.
float power_of_two(float x) {
  const float whole = floor(x);
  return exp_of((x - whole) * 0.69314718) * uintBitsToFloat(uint(int(whole) + 127) << 23);
}
float alibi_slope(uint head) {
  if (push.alibi_max_bias <= 0.0) return 0.0;
  const float power = float(push.alibi_power);
  return head < push.alibi_power
             ? power_of_two(-push.alibi_max_bias * float(head + 1u) / power)
             : power_of_two(-push.alibi_max_bias * 0.5 * float(2u * (head - push.alibi_power) + 1u) / power);
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
    const uint words = unit_words(key_type());
    for (uint b = 0u; b < push.key_dim / 32u; ++b) {
      const uint block = at + b * words * kBlockTokens;
      const float scale = uintBitsToFloat(cache_words[block + (words - 1u) * kBlockTokens]);
      for (uint w = 0u; w + 1u < words; ++w) {
        const uint word = cache_words[block + w * kBlockTokens];
        for (uint i = 0u; i < 4u; ++i) {
          const uint dim = b * 32u + 4u * w + i;
          if (key_type() == kQ8_0) {
            const float key = scale * float(int(word << (24u - 8u * i)) >> 24);
            for (uint r = 0u; r < kRows; ++r) {
              precise const float sum = fma(queries[r * push.key_dim + dim], key, score[r]);
              score[r] = sum;
            }
          } else {
            const float low = scale * (float(word >> (8u * i) & 15u) - 8.0);
            const float high = scale * (float(word >> (8u * i + 4u) & 15u) - 8.0);
            for (uint r = 0u; r < kRows; ++r) {
              precise float sum = fma(queries[r * push.key_dim + dim], low, score[r]);
              sum = fma(queries[r * push.key_dim + dim + 16u], high, sum);
              score[r] = sum;
            }
          }
        }
      }
    }
  }
}

// Dimension `dim` of the value whose words begin at `at`.
float load_value(uint at, uint dim) {
  if (value_type() == kF32) return uintBitsToFloat(cache_words[at + dim]);
  if (value_type() == kF16) {
    const vec2 pair = unpackHalf2x16(cache_words[at + dim / 2u]);
    return (dim & 1u) == 0u ? pair.x : pair.y;
  }
  if (value_type() == kBF16) {
    const uint word = cache_words[at + dim / 2u];
    return uintBitsToFloat((dim & 1u) == 0u ? word << 16 : word & 0xffff0000u);
  }
  const uint words = unit_words(value_type()), block = at + dim / 32u * words, i = dim % 32u;
  const float scale = uintBitsToFloat(cache_words[block + words - 1u]);
  if (value_type() == kQ8_0) return scale * float(int(cache_words[block + i / 4u] << (24u - 8u * (i % 4u))) >> 24);
  const uint byte = cache_words[block + i % 16u / 4u] >> (8u * (i % 4u));
  return scale * (float((i < 16u ? byte : byte >> 4) & 15u) - 8.0);
}

// The run that is being computed: tokens of one sequence at consecutive positions, for the query heads of one KV head.
struct Run {
  uint token, count, position;  // the first token, how many, the position of the first
  uint kv_head, first_head;     // first_head counts from the first query head of the KV head
  uint begin, end;              // positions that some token of the run may see
  uint table;                   // the sequence's block table
  uint key_row, value_row, block_words;  // words per token and KV head, and per block
} run;
uint group_size() { return push.heads / push.kv_heads; }  // query heads per KV head
// Row r is query head head_of(r) of the KV head, of token token_of(r) of the run. It exists if both are in range.
uint token_of(uint r) { return r / push.tile_heads; }
uint head_of(uint r) { return run.first_head + r % push.tile_heads; }

void set_run(uint token, uint count, uint kv_head, uint first_head) {
  const uint sequence = uint(step_words[push.sequences_at + token]);
  const uint position = uint(step_words[push.positions_at + token]);
  run.token = token;
  run.count = count;
  run.position = position;
  run.kv_head = kv_head;
  run.first_head = first_head;
  run.begin = first_visible(position);
  run.end = end_visible(position + count - 1u, uint(step_words[push.lengths_at + sequence]));
  run.table = push.table_at + sequence * push.table_stride;
  run.key_row = row_words(key_type(), push.key_dim);
  run.value_row = row_words(value_type(), push.value_dim);
  run.block_words = push.kv_heads * kBlockTokens * (run.key_row + run.value_row);
}

// What every lane keeps of the splits so far, per row: the largest score, the sum of the weights relative to it, and
// its dimensions of the weighted sum of the values.
float best[kRows], total[kRows], sums[kRows * kDims];
// The largest score of the split being added, and the factors that bring the old sums and those of the split to the
// larger of both.
float split_best[kRows], old_factor[kRows], new_factor[kRows];

void start_rows() {
  const uint group = group_size();
  for (uint i = gl_LocalInvocationID.x; i < kRows * push.key_dim; i += kLanes) {
    const uint r = i / push.key_dim, t = token_of(r), h = head_of(r);
    const bool exists = t < run.count && h < group;
    queries[i] = exists ? q_values[push.q_at + (run.token + t) * push.q_stride +
                                   (run.kv_head * group + h) * push.key_dim + i % push.key_dim]
                        : 0.0;
  }
  for (uint r = 0u; r < kRows; ++r) {
    best[r] = -infinity();
    total[r] = 0.0;
    for (uint d = 0u; d < kDims; ++d) sums[r * kDims + d] = 0.0;
  }
}

// The score of row r at position p; -infinity when it must not see p.
float masked_score(uint r, uint p, bool inside, float product) {
  const uint t = token_of(r), h = head_of(r), group = group_size(), at = run.position + t;
  precise float s = product * push.scale;
  if (push.softcap > 0.0) s = push.softcap * tanh_of(divide(s, push.softcap));
  if (push.alibi_max_bias > 0.0) s -= alibi_slope(run.kv_head * group + h) * abs(float(at) - float(p));
  const bool seen = inside && t < run.count && h < group && p >= first_visible(at) && p < end_visible(at, run.end);
  return seen ? s : -infinity();
}

// weights = the scores of a split, whose positions are [first, last).
void score_split(uint split, uint first, uint last) {
  for (uint i = gl_LocalInvocationID.x; i < kSplit; i += kLanes) {
    const uint p = split * kSplit + i;
    float score[kRows];
    for (uint r = 0u; r < kRows; ++r) score[r] = 0.0;
    const bool inside = p >= first && p < last;
    if (inside) {
      const uint id = uint(step_words[run.table + p / kBlockTokens]);
      add_scores(push.cache_at + id * run.block_words + run.kv_head * run.key_row * kBlockTokens + p % kBlockTokens,
                 score);
    }
    for (uint r = 0u; r < kRows; ++r) weights[r * kSplit + i] = masked_score(r, p, inside, score[r]);
  }
}

// split_best = the largest score of each row: 16 lanes take every 16th score, then every lane reduces the 16 results.
void find_split_best() {
  const uint part_row = gl_LocalInvocationID.x / kParts, part = gl_LocalInvocationID.x % kParts;
  for (uint r = part_row; r < kRows; r += kLanes / kParts) {
    float most = -infinity();
    for (uint i = part; i < kSplit; i += kParts) most = max(most, weights[r * kSplit + i]);
    parts[r * kParts + part] = most;
  }
  barrier();
  for (uint r = 0u; r < kRows; ++r) {
    float most = parts[r * kParts];
    for (uint i = 1u; i < kParts; ++i) most = max(most, parts[r * kParts + i]);
    split_best[r] = most;
  }
}

// weights = exp(score - split_best), and parts = their sums: 16 lanes take every 16th.
void exponentiate_split() {
  const uint part_row = gl_LocalInvocationID.x / kParts, part = gl_LocalInvocationID.x % kParts;
  for (uint r = part_row; r < kRows; r += kLanes / kParts) {
    float most = -infinity();
    for (uint i = 0u; i < kRows; ++i) most = i == r ? split_best[i] : most;
    precise float sum = 0.0;
    for (uint i = part; i < kSplit; i += kParts) {
      const float s = weights[r * kSplit + i];
      precise const float less = s - most;
      const float w = s == -infinity() ? 0.0 : exp_of(less);
      weights[r * kSplit + i] = w;
      sum += w;
    }
    parts[r * kParts + part] = sum;
  }
}

// Merges maximum and sum of the split into those of the rows. Where the split, or everything before it, is masked, its
// factor is 0.
void merge_totals() {
  for (uint r = 0u; r < kRows; ++r) {
    precise float sum = parts[r * kParts];
    for (uint i = 1u; i < kParts; ++i) sum += parts[r * kParts + i];
    const float most = max(best[r], split_best[r]);
    precise const float old_less = best[r] - most, new_less = split_best[r] - most;
    old_factor[r] = best[r] == -infinity() ? 0.0 : exp_of(old_less);
    new_factor[r] = split_best[r] == -infinity() ? 0.0 : exp_of(new_less);
    precise const float merged = fma(sum, new_factor[r], total[r] * old_factor[r]);
    total[r] = merged;
    best[r] = most;
  }
}

// Merges the weighted values of positions [first, last), all of one split, into the sums.
void merge_values(uint first, uint last) {
  for (uint d = 0u; d < kDims; ++d) {
    const uint dim = d * kLanes + gl_LocalInvocationID.x;
    if (dim >= push.value_dim) continue;
    float sum[kRows];
    for (uint r = 0u; r < kRows; ++r) sum[r] = 0.0;
    for (uint p = first; p < last;) {
      const uint id = uint(step_words[run.table + p / kBlockTokens]);
      const uint rows = push.cache_at + id * run.block_words + push.kv_heads * run.key_row * kBlockTokens +
                        run.kv_head * run.value_row * kBlockTokens;
      const uint stop = min(last, (p / kBlockTokens + 1u) * kBlockTokens);
      for (; p < stop; ++p) {
        const float value = load_value(rows + p % kBlockTokens * run.value_row, dim);
        for (uint r = 0u; r < kRows; ++r) {
          const float w = weights[r * kSplit + p % kSplit];
          precise const float more = fma(w, value, sum[r]);
          if (w != 0.0) sum[r] = more;
        }
      }
    }
    for (uint r = 0u; r < kRows; ++r) {
      precise const float merged = fma(sum[r], new_factor[r], sums[r * kDims + d] * old_factor[r]);
      if (new_factor[r] != 0.0) sums[r * kDims + d] = merged;
    }
  }
}

// Leaves row r for attention_merge; `row` is its place in the output.
void store_part(uint r, uint row) {
  const uint lane = gl_LocalInvocationID.x;
  const uint to = push.out_at + (row * push.chunks + gl_WorkGroupID.x) * (push.value_dim + 2u);
  if (lane == 0u) {
    out_values[to] = best[r];
    out_values[to + 1u] = total[r];
  }
  for (uint d = 0u; d < kDims; ++d) {
    if (d * kLanes + lane < push.value_dim) out_values[to + 2u + d * kLanes + lane] = sums[r * kDims + d];
  }
}

void store_row(uint r, uint row, uint head) {
  float factor = 1.0, sum = total[r];
  if (has_sinks()) {
    const float sink = sinks[push.sinks_at + head], most = max(best[r], sink);
    factor = exp_of(best[r] - most);
    sum = fma(sum, factor, exp_of(sink - most));
  }
  for (uint d = 0u; d < kDims; ++d) {
    const uint dim = d * kLanes + gl_LocalInvocationID.x;
    if (dim < push.value_dim) {
      out_values[push.out_at + row * push.value_dim + dim] = divide(sums[r * kDims + d] * factor, sum);
    }
  }
}

void attend() {
  barrier();  // the run before may still be reading shared memory
  start_rows();
  uint split = run.begin / kSplit;
  if (push.chunks > 1u) split += (gl_WorkGroupID.x + push.chunks - split % push.chunks) % push.chunks;
  for (; split * kSplit < run.end; split += push.chunks) {
    const uint first = max(run.begin, split * kSplit), last = min(run.end, (split + 1u) * kSplit);
    barrier();
    score_split(split, first, last);
    barrier();
    find_split_best();
    barrier();
    exponentiate_split();
    barrier();
    merge_totals();
    merge_values(first, last);
  }
  for (uint r = 0u; r < kRows; ++r) {
    const uint t = token_of(r), h = head_of(r);
    if (t >= run.count || h >= group_size()) continue;
    const uint head = run.kv_head * group_size() + h, row = (run.token + t) * push.heads + head;
    if (push.chunks > 1u) store_part(r, row);
    else store_row(r, row, head);
  }
}

void main() {
  const uint head_tiles = (push.heads / push.kv_heads + push.tile_heads - 1u) / push.tile_heads;
  const uint kv_head = gl_WorkGroupID.y / head_tiles, first_head = gl_WorkGroupID.y % head_tiles * push.tile_heads;
  const uint begin = push.first_token + gl_WorkGroupID.z * push.tile_tokens;
  const uint end = min(begin + push.tile_tokens, min(n_tokens(), push.last_token));
  for (uint token = begin; token < end;) {
    uint next = token + 1u;
    while (next < end && step_words[push.sequences_at + next] == step_words[push.sequences_at + token]) ++next;
    set_run(token, next - token, kv_head, first_head);
    attend();
    token = next;
  }
}
