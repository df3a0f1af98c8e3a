#version 450
#extension GL_GOOGLE_include_directive : require
// Selects the blocks with the best scores, one workgroup per selection of a token. Scores are compared as integers that
// sort like them. The score of the last selected block is found digit by digit, from counts of the blocks with each
// digit; then each lane counts the selected blocks in its part and writes them after those of lower lanes.

layout(local_size_x = 256) in;
#include "glsl/common.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Scores { float scores[]; };  // [rows, scores_stride]
layout(set = 0, binding = 2, std430) writeonly buffer Out { int selected[]; };    // [T, selections, count (+ 1)]
layout(push_constant) uniform Push {
  uint scores_at, scores_stride, out_at, positions_at;
  uint stride, selections, count, block, n_last;
  uint unfinished;  // 1: the incomplete entry after the last one is selected too
  uint first_row;
} push;

const uint kLanes = 256u, kDigits = 2048u;
shared uint digit_counts[kDigits];
shared uint lane_counts[kLanes];
shared uint above_counts[kLanes], equal_counts[kLanes];
shared uint chosen_digit, chosen_left;

uint scores_at, n_entries, n_blocks;

// An integer that sorts like the score; NaN counts as -infinity.
uint key_of(uint b) {
  float best = -infinity();
  if (b + push.n_last >= n_blocks) {
    best = infinity();
  } else {
    const uint end = min((b + 1u) * push.block, n_entries);
    for (uint e = b * push.block; e < end; ++e) {
      const float s = scores[scores_at + e];
      if (s > best) best = s;
    }
  }
  const uint bits = best == 0.0 ? 0u : floatBitsToUint(best);
  return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}

// Finds the digit of `bits` bits at `shift` of the left-th largest key, among the keys whose bits above it are
// `prefix`. chosen_left: how many of the `left` largest keys have that digit.
void choose_digit(uint prefix, uint shift, uint bits, uint left) {
  const uint lane = gl_LocalInvocationID.x, per_lane = kDigits / kLanes;
  for (uint d = lane; d < kDigits; d += kLanes) digit_counts[d] = 0u;
  barrier();
  for (uint b = lane; b < n_blocks; b += kLanes) {
    const uint key = key_of(b);
    const bool same = shift + bits == 32u || key >> (shift + bits) == prefix;
    if (same) atomicAdd(digit_counts[key >> shift & ((1u << bits) - 1u)], 1u);
  }
  barrier();
  uint sum = 0u;
  for (uint i = 0u; i < per_lane; ++i) sum += digit_counts[lane * per_lane + i];
  lane_counts[lane] = sum;
  barrier();
  if (lane == 0u) {
    uint part = kLanes - 1u;
    for (; lane_counts[part] < left; --part) left -= lane_counts[part];
    uint digit = part * per_lane + per_lane - 1u;
    for (; digit_counts[digit] < left; --digit) left -= digit_counts[digit];
    chosen_digit = digit;
    chosen_left = left;
  }
  barrier();
}

// Writes the numbers of the `push.count` best blocks in order: all above `threshold`, and the first `left` equal to it.
void write_selected(uint to, uint threshold, uint left) {
  const uint lane = gl_LocalInvocationID.x, per_lane = (n_blocks + kLanes - 1u) / kLanes;
  const uint begin = min(lane * per_lane, n_blocks), end = min(begin + per_lane, n_blocks);
  uint above = 0u, equal = 0u;
  for (uint b = begin; b < end; ++b) {
    const uint key = key_of(b);
    above += key > threshold ? 1u : 0u;
    equal += key == threshold ? 1u : 0u;
  }
  above_counts[lane] = above;
  equal_counts[lane] = equal;
  barrier();
  above = equal = 0u;
  for (uint i = 0u; i < lane; ++i) {
    above += above_counts[i];
    equal += equal_counts[i];
  }
  for (uint b = begin; b < end; ++b) {
    const uint key = key_of(b);
    if (key > threshold || (key == threshold && equal < left)) selected[to + above + min(equal, left)] = int(b);
    above += key > threshold ? 1u : 0u;
    equal += key == threshold ? 1u : 0u;
  }
}

void main() {
  const uint lane = gl_LocalInvocationID.x, row = push.first_row + gl_WorkGroupID.x, token = row / push.selections;
  if (token >= n_tokens()) return;
  const uint positions = uint(step_words[push.positions_at + token]) + 1u;
  n_entries = positions / push.stride;
  n_blocks = (n_entries + push.block - 1u) / push.block;
  scores_at = push.scores_at + gl_WorkGroupID.x * push.scores_stride;
  const uint width = push.count + push.unfinished, to = push.out_at + row * width, n = min(n_blocks, push.count);
  if (n == n_blocks) {
    for (uint i = lane; i < n; i += kLanes) selected[to + i] = int(i);
  } else {
    choose_digit(0u, 21u, 11u, push.count);
    uint threshold = chosen_digit;
    choose_digit(threshold, 10u, 11u, chosen_left);
    threshold = threshold << 11 | chosen_digit;
    choose_digit(threshold, 0u, 10u, chosen_left);
    write_selected(to, threshold << 10 | chosen_digit, chosen_left);
  }
  const bool further = push.unfinished != 0u && positions % push.stride != 0u;
  for (uint i = n + lane; i < width; i += kLanes) selected[to + i] = further && i == n ? int(n_blocks) : -1;
}
