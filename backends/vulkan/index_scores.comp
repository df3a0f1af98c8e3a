#version 450
#extension GL_GOOGLE_include_directive : require
// The scores of the entries of an index cache, for select_positions. A row is a selection of a token; workgroups share
// its entries, 128 at a time. Rows that select everything need no scores and get none.

layout(local_size_x = 128) in;
layout(constant_id = 0) const uint kRows = 8;  // heads at a time
layout(constant_id = 1) const uint kFixedKeyType = 1;
#include "glsl/common.glsl"
#include "glsl/cache.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Q { float q_values[]; };
layout(set = 0, binding = 2, std430) readonly buffer HeadWeights { float head_weights[]; };
layout(set = 0, binding = 3, std430) readonly buffer Cache { uint cache_words[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Scores { float scores[]; };  // [rows, scores_stride]
layout(push_constant) uniform Push {
  uint heads, key_dim, q_at, q_stride, weights_at, weights_stride, cache_at, scores_at, scores_stride;
  uint positions_at, sequences_at, table_at, table_stride;
  uint stride, selections, count, block;  // of the cache; per token; blocks per selection; entries per block
  uint first_row;
  uint flags;  // bit 0: a row sums all heads, bit 1: with weights; from bit 8: type of keys
} push;
bool sums_heads() { return (push.flags & 1u) != 0u; }
bool has_weights() { return (push.flags & 2u) != 0u; }
uint key_type() { return kFixedKeyType == kAnyType ? push.flags >> 8 : kFixedKeyType; }
const uint kLanes = 128u, kLatentRows = kLanes;
#include "glsl/latent.glsl"

uint token, first_head, end_head;  // of the heads that are being multiplied

float query_value(uint r, uint dim) {
  const uint head = first_head + r;
  return head < end_head ? q_values[push.q_at + token * push.q_stride + head * push.key_dim + dim] : 0.0;
}

// Where the key of an entry begins.
uint key_at(uint entry, uint table) {
  const uint entries = max(kBlockTokens / push.stride, 1u), position = (entry + 1u) * push.stride - 1u;
  const uint id = uint(step_words[table + position / kBlockTokens]);
  return push.cache_at + (id * entries + entry % entries) * row_words(key_type(), push.key_dim);
}

// The score of entry row_at[lane].
float score(uint head, uint heads_end) {
  precise float sum = 0.0;
  end_head = heads_end;
  for (first_head = head; first_head < heads_end; first_head += kRows) {
    float products[kRows];
    for (uint r = 0u; r < kRows; ++r) products[r] = 0.0;
    add_products(0u, key_type(), push.key_dim, products);
    for (uint r = 0u; r < kRows && first_head + r < heads_end; ++r) {
      if (!sums_heads()) sum = products[r];
      else if (products[r] > 0.0 && has_weights()) {
        sum = fma(head_weights[push.weights_at + token * push.weights_stride + first_head + r], products[r], sum);
      } else if (products[r] > 0.0) sum += products[r];
    }
  }
  return sum;
}

void main() {
  const uint lane = gl_LocalInvocationID.x, row = push.first_row + gl_WorkGroupID.y;
  token = row / push.selections;
  if (token >= n_tokens()) return;
  const uint n = (uint(step_words[push.positions_at + token]) + 1u) / push.stride;
  if ((n + push.block - 1u) / push.block <= push.count) return;
  const uint table = push.table_at + uint(step_words[push.sequences_at + token]) * push.table_stride;
  const uint head = sums_heads() ? 0u : row % push.selections, heads_end = sums_heads() ? push.heads : head + 1u;
  for (uint first = gl_WorkGroupID.x * kLanes; first < n; first += gl_NumWorkGroups.x * kLanes) {
    const uint entry = first + lane;
    barrier();  // the previous entries may still be in use
    row_at[lane] = entry < n ? key_at(entry, table) : kNoRow;
    const float found = score(head, heads_end);
    if (entry < n) scores[push.scores_at + gl_WorkGroupID.y * push.scores_stride + entry] = found;
  }
}
