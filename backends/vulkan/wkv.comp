#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// wkv of RWKV-6 and RWKV-7, see glsl/columns.glsl. States are square: d is n.

layout(constant_id = 4) const bool kSeven = false;
#include "glsl/common.glsl"
#include "glsl/math.glsl"
#include "glsl/runs.glsl"
layout(set = 0, binding = 1, std430) readonly buffer R { float r_values[]; };           // [T, heads, n]; k to b too
layout(set = 0, binding = 2, std430) readonly buffer K { float k_values[]; };
layout(set = 0, binding = 3, std430) readonly buffer V { float v_values[]; };
layout(set = 0, binding = 4, std430) readonly buffer W { float w_values[]; };
layout(set = 0, binding = 5, std430) readonly buffer First { float first_values[]; };   // [heads * n]
layout(set = 0, binding = 6, std430) readonly buffer A { float a_values[]; };
layout(set = 0, binding = 7, std430) readonly buffer B { float b_values[]; };
layout(set = 0, binding = 8, std430) writeonly buffer Out { float out_values[]; };      // [T, heads * n]
layout(set = 0, binding = 9, std430) writeonly buffer Bonus { float bonus_values[]; };  // [T, heads * n]
layout(set = 0, binding = 10, std430) buffer Slots { float slots[]; };                  // [slots, .., heads, n, n]
layout(push_constant) uniform Push {
  States states;
  uint heads, r_at, r_stride, k_at, k_stride, v_at, v_stride, w_at, w_stride;
  uint first_at, a_at, a_stride, b_at, b_stride, out_at, bonus_at;
} push;
#include "glsl/columns.glsl"

const uint kBonusLanes = 16u;
shared float bonus_sums[16u * kBonusLanes];  // [token of the tile, lane]

// The sums of r * first * k of `count` tokens, with 16 lanes per token.
void sum_bonus(uint token, uint count, uint head_at) {
  const uint own = lane_of() / kBonusLanes, lane = lane_of() % kBonusLanes, t = token + own;
  if (own < count) {
    precise float sum = 0.0;
    for (uint j = lane; j < kN; j += kBonusLanes) {
      precise const float r = r_values[push.r_at + t * push.r_stride + head_at + j] *
                              first_values[push.first_at + head_at + j];
      sum = fma(r, k_values[push.k_at + t * push.k_stride + head_at + j], sum);
    }
    bonus_sums[lane_of()] = sum;
  }
  for (uint stride = kBonusLanes / 2u; stride > 0u; stride >>= 1) {
    barrier();
    if (own < count && lane < stride) bonus_sums[lane_of()] += bonus_sums[lane_of() + stride];
  }
}

// The decays of the tokens from `token` on, and their bonus.
void prepare(uint token, uint end, uint head_at, uint first_column) {
  const uint count = min(kTile, end - token);
  barrier();
  for (uint i = lane_of(); i < count * kN; i += kLanes) {
    const float w = w_values[push.w_at + (token + i / kN) * push.w_stride + head_at + i % kN];
    decays[i] = exp_of(kSeven ? -0.606531 * sigmoid_of(w) : -exp_of(w));
  }
  sum_bonus(token, count, head_at);
  barrier();
  for (uint i = lane_of(); i < count * kColumns; i += kLanes) {
    const uint column = first_column + i % kColumns, t = token + i / kColumns;
    if (column >= kN) continue;
    bonus_values[push.bonus_at + t * push.heads * kN + head_at + column] =
        v_values[push.v_at + t * push.v_stride + head_at + column] * bonus_sums[i / kColumns * kBonusLanes];
  }
}

// This lane's part of S' a.
float read_column(uint a_at) {
  precise float sum = 0.0;
  [[unroll]] for (uint k = 0u; k < kPerLane; ++k) {
    const uint j = first_own() + k;
    if (j < kN) sum = fma(values[k], a_values[a_at + j], sum);
  }
  return sum;
}

// This lane's part of S' r.
float write_column(uint t, uint head_at, uint decays_at, float v, float read) {
  precise float sum = 0.0;
  [[unroll]] for (uint k = 0u; k < kPerLane; ++k) {
    const uint j = first_own() + k, at = head_at + j;
    if (j >= kN) continue;
    const float last = values[k];
    precise float next = fma(k_values[push.k_at + t * push.k_stride + at], v, last * decays[decays_at + j]);
    if (kSeven) next = fma(b_values[push.b_at + t * push.b_stride + at], read, next);
    values[k] = next;
    sum = fma(kSeven ? next : last, r_values[push.r_at + t * push.r_stride + at], sum);
  }
  return sum;
}

void main() {
  const uint blocks = (kN + kColumns - 1u) / kColumns, head_at = gl_WorkGroupID.x / blocks * kN;
  const Run run = find_run(push.states, gl_WorkGroupID.y, kLanes);
  if (run.first == run.end) return;
  const uint first_column = gl_WorkGroupID.x % blocks * kColumns;
  const uint column = first_column + column_of(), part = lane_of() / kColumns;
  const bool used = column < kN;
  const uint state = run.state + head_at * kN + column, out_at = push.out_at + head_at + column;
  load_column(state, kN, run.empty || !used);
  for (uint t = run.first; t < run.end; ++t) {
    const uint turn = t - run.first;
    if (turn % kTile == 0u) prepare(t, run.end, head_at, first_column);
    if (kSeven) keep_sum(kRead, turn, read_column(push.a_at + t * push.a_stride + head_at));
    barrier();
    // The parts take turns to write the result of the previous token.
    if (turn > 0u && used && turn % kParts == part) {
      out_values[out_at + (t - 1u) * push.heads * kN] = column_sum(kResult, turn - 1u);
    }
    const float v = used ? v_values[push.v_at + t * push.v_stride + head_at + column] : 0.0;
    const float read = kSeven ? column_sum(kRead, turn) : 0.0;
    keep_sum(kResult, turn, write_column(t, head_at, turn % kTile * kN, v, read));
  }
  barrier();
  if (!used) return;
  if (part == 0u) out_values[out_at + (run.end - 1u) * push.heads * kN] = column_sum(kResult, run.end - 1u - run.first);
  store_column(state, kN);
}
