// Shared by the attention shaders: the softmax of a query's scores with the keys it sees, times the values. A workgroup
// takes one KV head and kRows rows: the query heads that share it, of one or several tokens. The context is split every
// 256 entries. For each split, the lanes write the scores to shared memory, then each lane sums some dimensions of the
// values; splits are merged in order. A row's result does not depend on the others in its workgroup: masked entries
// have weight zero and are skipped.
//
// chunks > 1: workgroup x takes every chunks-th split and stores maximum, sum and values for attention_merge.
//
// Entries are positions, and splits begin at absolute ones. -DSPARSE: entries are those that one token has selected,
// counted from the first of them, or, without a selection, those of the cache, one per `stride` positions. The
// log-sum-exp of each row is then a result too.

layout(local_size_x = 128) in;
layout(constant_id = 0) const uint kRows = 8;
layout(constant_id = 1) const uint kFixedKeyType = 1;
layout(constant_id = 2) const uint kFixedValueType = 1;
layout(constant_id = 3) const uint kDims = 1;  // dimensions of the values per lane
layout(set = 0, binding = 1, std430) readonly buffer Q { float q_values[]; };
layout(set = 0, binding = 2, std430) readonly buffer Sinks { float sinks[]; };
layout(set = 0, binding = 3, std430) readonly buffer Cache { uint cache_words[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Out { float out_values[]; };
#ifdef SPARSE
layout(set = 0, binding = 5, std430) readonly buffer Blocks { int blocks[]; };
layout(set = 0, binding = 6, std430) writeonly buffer LogSums { float log_sums[]; };
#endif
layout(push_constant) uniform Push {
  uint heads, kv_heads, tile_heads, tile_tokens;  // tile_heads * tile_tokens is at most kRows
  uint q_at, q_stride, sinks_at, cache_at, out_at;
  uint positions_at, sequences_at, lengths_at, table_at, table_stride;
  uint window, alibi_power;  // the largest power of two up to `heads`
  float scale, softcap, alibi_max_bias;
  uint key_dim, value_dim, chunks;
  uint flags;  // bit 0: causal, bit 1: sinks, bit 2: chunked; from bit 8: type of keys, from bit 16: type of values
  uint first_token, last_token;  // this launch computes [first_token, last_token)
  // -DSPARSE: blocks [T, selections, count] of `block` entries each; count is 0 without a selection.
  uint blocks_at, selections, count, block, stride, log_sums_at;
} push;
bool is_causal() { return (push.flags & 1u) != 0u; }
bool has_sinks() { return (push.flags & 2u) != 0u; }
bool is_chunked() { return (push.flags & 4u) != 0u; }
uint key_type() { return kFixedKeyType == kAnyType ? push.flags >> 8 & 255u : kFixedKeyType; }
uint value_type() { return kFixedValueType == kAnyType ? push.flags >> 16 : kFixedValueType; }

const uint kLanes = 128u, kSplit = 256u, kParts = 16u;
shared float weights[kRows * kSplit];
shared float parts[kRows * kParts];
// For each row, over the splits so far: the largest score, and the sum of the weights relative to it.
shared float best[kRows], total[kRows];
// The largest score of the split being merged, and the factors that rescale the old sums and those of the split to the
// larger of both maxima.
shared float split_best[kRows], old_factor[kRows], new_factor[kRows];
// For each row, this lane's dimensions of the weighted sum of the values.
float sums[kRows * kDims];

// The run that is being computed: tokens of one sequence at consecutive positions, for the query heads of one KV head.
struct Run {
  uint token, count, position;  // the first token, how many, the position of the first
  uint kv_head, first_head;     // first_head counts from the first query head of the KV head
  uint begin, end;              // entries that some token of the run may see
  uint table;                   // the sequence's block table
  uint blocks;                  // -DSPARSE: the token's selected blocks
} run;
uint group_size() { return push.heads / push.kv_heads; }  // query heads per KV head
// Row r is query head head_of(r) of the KV head, of token token_of(r) of the run. It exists if both are in range.
uint token_of(uint r) { return r / push.tile_heads; }
uint head_of(uint r) { return run.first_head + r % push.tile_heads; }
bool exists(uint r) { return token_of(r) < run.count && head_of(r) < group_size(); }
// Where the query of row r begins. REQUIRES: the row exists.
uint query_at(uint r) {
  return push.q_at + (run.token + token_of(r)) * push.q_stride + (run.kv_head * group_size() + head_of(r)) * push.key_dim;
}

// Defined by the shader: prepare for a run; write the scores of entries [first, last) of a split to `weights` with
// masked_score(); add the weighted values of these entries to `sums` with merge_sum().
void start_run();
void score_split(uint split, uint first, uint last);
void merge_values(uint first, uint last);

#ifdef SPARSE
// Sets [begin, end) to the entries that the token sees, counted among its selected ones if it has a selection. Only the
// last selected block may have entries that the token does not see.
void find_entries(uint position, uint length) {
  const uint seen = (position + 1u) / push.stride;
  run.begin = push.window == 0u ? 0u : seen - min(seen, push.window);
  run.end = seen;
  if (push.count == 0u) return;
  run.blocks = push.blocks_at + (run.token * push.selections + (push.selections > 1u ? run.kv_head : 0u)) * push.count;
  uint n = 0u, most = push.count;  // unused places after the last block hold -1
  while (n < most) {
    const uint middle = (n + most) / 2u;
    if (blocks[run.blocks + middle] >= 0) n = middle + 1u;
    else most = middle;
  }
  run.begin = run.end = 0u;
  if (n == 0u) return;
  const uint last = uint(blocks[run.blocks + n - 1u]) * push.block;
  run.end = (n - 1u) * push.block + min(seen - min(seen, last), push.block);
}
bool sees(uint at, uint entry) { return true; }
// The cache block of an entry of the run, as an index into the pool, and its slot there.
uvec2 place_of(uint i) {
  const uint entry =
      push.count == 0u ? i : uint(blocks[run.blocks + i / push.block]) * push.block + i % push.block;
  const uint entries = max(kBlockTokens / push.stride, 1u), position = (entry + 1u) * push.stride - 1u;
  return uvec2(step_words[run.table + position / kBlockTokens], entry % entries);
}
uint entries_per_block() { return max(kBlockTokens / push.stride, 1u); }
#else
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
void find_entries(uint position, uint length) {
  run.begin = first_visible(position);
  run.end = end_visible(position + run.count - 1u, length);
}
bool sees(uint at, uint p) { return p >= first_visible(at) && p < end_visible(at, run.end); }
uvec2 place_of(uint p) { return uvec2(step_words[run.table + p / kBlockTokens], p % kBlockTokens); }
uint entries_per_block() { return kBlockTokens; }
#endif

void set_run(uint token, uint count, uint kv_head, uint first_head) {
  const uint sequence = uint(step_words[push.sequences_at + token]);
  run.token = token;
  run.count = count;
  run.position = uint(step_words[push.positions_at + token]);
  run.kv_head = kv_head;
  run.first_head = first_head;
  run.table = push.table_at + sequence * push.table_stride;
  find_entries(run.position, uint(step_words[push.lengths_at + sequence]));
}

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

// The score of row r and entry p; -infinity if the row must not see p.
float masked_score(uint r, uint p, bool inside, float product) {
  const uint at = run.position + token_of(r);
  precise float s = product * push.scale;
  if (push.softcap > 0.0) s = push.softcap * tanh_of(divide(s, push.softcap));
  if (push.alibi_max_bias > 0.0) {
    s -= alibi_slope(run.kv_head * group_size() + head_of(r)) * abs(float(at) - float(p));
  }
  return inside && exists(r) && sees(at, p) ? s : -infinity();
}

// Merges the sum of a row and dimension over the entries of a split into the earlier ones.
void merge_sum(uint r, uint d, float sum) {
  precise const float merged = fma(sum, new_factor[r], sums[r * kDims + d] * old_factor[r]);
  if (new_factor[r] != 0.0) sums[r * kDims + d] = merged;
}

void start_rows() {
  if (gl_LocalInvocationID.x < kRows) {
    best[gl_LocalInvocationID.x] = -infinity();
    total[gl_LocalInvocationID.x] = 0.0;
  }
  for (uint i = 0u; i < kRows * kDims; ++i) sums[i] = 0.0;
}

// split_best = the largest score of each row: 16 lanes take every 16th score, then one lane reduces the 16 results.
void find_split_best() {
  const uint lane = gl_LocalInvocationID.x, part = lane % kParts;
  for (uint r = lane / kParts; r < kRows; r += kLanes / kParts) {
    float most = -infinity();
    for (uint i = part; i < kSplit; i += kParts) most = max(most, weights[r * kSplit + i]);
    parts[r * kParts + part] = most;
  }
  barrier();
  if (lane < kRows) {
    float most = parts[lane * kParts];
    for (uint i = 1u; i < kParts; ++i) most = max(most, parts[lane * kParts + i]);
    split_best[lane] = most;
  }
}

// weights = exp(score - split_best), and parts = their sums: 16 lanes take every 16th.
void exponentiate_split() {
  const uint part = gl_LocalInvocationID.x % kParts;
  for (uint r = gl_LocalInvocationID.x / kParts; r < kRows; r += kLanes / kParts) {
    const float most = split_best[r];
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
  const uint r = gl_LocalInvocationID.x;
  if (r >= kRows) return;
  precise float sum = parts[r * kParts];
  for (uint i = 1u; i < kParts; ++i) sum += parts[r * kParts + i];
  const float most = max(best[r], split_best[r]);
  precise const float old_less = best[r] - most, new_less = split_best[r] - most;
  const float from_old = best[r] == -infinity() ? 0.0 : exp_of(old_less);
  const float from_new = split_best[r] == -infinity() ? 0.0 : exp_of(new_less);
  precise const float merged = fma(sum, from_new, total[r] * from_old);
  old_factor[r] = from_old;
  new_factor[r] = from_new;
  total[r] = merged;
  best[r] = most;
}

// Stores row r for attention_merge; `row` is its place in the output.
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
  float factor = 1.0, sum = total[r], most = best[r];
  if (has_sinks()) {
    const float sink = sinks[push.sinks_at + head];
    most = max(best[r], sink);
    factor = exp_of(best[r] - most);
    sum = fma(sum, factor, exp_of(sink - most));
  }
  bool nothing = false;
#ifdef SPARSE
  nothing = run.begin >= run.end;
  if (gl_LocalInvocationID.x == 0u) log_sums[push.log_sums_at + row] = nothing ? kNothingSeen : most + log_of(sum);
#endif
  for (uint d = 0u; d < kDims; ++d) {
    const uint dim = d * kLanes + gl_LocalInvocationID.x;
    if (dim >= push.value_dim) continue;
    out_values[push.out_at + row * push.value_dim + dim] = nothing ? 0.0 : divide(sums[r * kDims + d] * factor, sum);
  }
}

void attend() {
  barrier();  // the previous run may still be reading shared memory
  start_rows();
  start_run();
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
    barrier();
    merge_values(first, last);
  }
  barrier();
  for (uint r = 0u; r < kRows; ++r) {
    if (!exists(r)) continue;
    const uint head = run.kv_head * group_size() + head_of(r), row = (run.token + token_of(r)) * push.heads + head;
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
