#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// The gated delta rule, see glsl/columns.glsl.

layout(constant_id = 4) const bool kPerChannel = false;
#include "glsl/common.glsl"
#include "glsl/math.glsl"
#include "glsl/runs.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Q { float q_values[]; };        // [T, groups, n]
layout(set = 0, binding = 2, std430) readonly buffer K { float k_values[]; };        // [T, groups, n]
layout(set = 0, binding = 3, std430) readonly buffer V { float v_values[]; };        // [T, heads, d]
layout(set = 0, binding = 4, std430) readonly buffer Dt { float dt_values[]; };      // [T, heads] or [T, heads, n]
layout(set = 0, binding = 5, std430) readonly buffer Beta { float beta_values[]; };  // [T, heads]
layout(set = 0, binding = 6, std430) readonly buffer A { float a_values[]; };        // [heads]
layout(set = 0, binding = 7, std430) writeonly buffer Out { float out_values[]; };   // [T, heads * d]
layout(set = 0, binding = 8, std430) buffer Slots { float slots[]; };                // [slots, .., heads, n, d]
layout(push_constant) uniform Push {
  States states;
  uint groups, heads, d, tiled_heads;
  float lowest_decay;
  uint q_at, q_stride, k_at, k_stride, v_at, v_stride, dt_at, dt_stride, beta_at, beta_stride, a_at, out_at;
} push;
#include "glsl/columns.glsl"

const uint kPerToken = kPerChannel ? kN : 1u;  // decays

float decay_of(float dt, float rate) {
  if (push.lowest_decay < 0.0) return exp_of(push.lowest_decay * sigmoid_of(rate * dt));
  return exp_of(rate * softplus_of(dt));
}

// The decays of the tokens from `token` on.
void prepare(uint token, uint end, uint head) {
  const float rate = a_values[push.a_at + head];
  const uint count = min(kTile, end - token) * kPerToken;
  barrier();
  for (uint i = lane_of(); i < count; i += kLanes) {
    const uint dt_at = push.dt_at + (token + i / kPerToken) * push.dt_stride + head * kPerToken;
    decays[i] = decay_of(dt_values[dt_at + i % kPerToken], rate);
  }
  barrier();
}

// This lane's part of S' k, after the decay.
float read_column(uint decays_at, uint k_at) {
  precise float sum = 0.0;
  [[unroll]] for (uint k = 0u; k < kPerLane; ++k) {
    const uint j = first_own() + k;
    if (j >= kN) continue;
    values[k] *= decays[decays_at + (kPerChannel ? j : 0u)];
    sum = fma(values[k], k_values[k_at + j], sum);
  }
  return sum;
}

// This lane's part of S' q, after the correction.
float write_column(float correction, uint k_at, uint q_at) {
  precise float sum = 0.0;
  [[unroll]] for (uint k = 0u; k < kPerLane; ++k) {
    const uint j = first_own() + k;
    if (j >= kN) continue;
    precise const float next = fma(k_values[k_at + j], correction, values[k]);
    values[k] = next;
    sum = fma(next, q_values[q_at + j], sum);
  }
  return sum;
}

void main() {
  const uint blocks = (push.d + kColumns - 1u) / kColumns, head = gl_WorkGroupID.x / blocks;
  const Run run = find_run(push.states, gl_WorkGroupID.y, kLanes);
  if (run.first == run.end) return;
  const uint group = (push.tiled_heads != 0u ? head % push.groups : head / (push.heads / push.groups)) * kN;
  const uint column = gl_WorkGroupID.x % blocks * kColumns + column_of(), part = lane_of() / kColumns;
  const bool used = column < push.d;
  const uint state = run.state + head * kN * push.d + column, out_at = push.out_at + head * push.d + column;
  load_column(state, push.d, run.empty || !used);
  for (uint t = run.first; t < run.end; ++t) {
    const uint turn = t - run.first;
    if (turn % kTile == 0u) prepare(t, run.end, head);
    const uint k_at = push.k_at + t * push.k_stride + group, q_at = push.q_at + t * push.q_stride + group;
    keep_sum(kRead, turn, read_column(turn % kTile * kPerToken, k_at));
    barrier();
    // The parts take turns to write the result of the previous token.
    if (turn > 0u && used && turn % kParts == part) {
      out_values[out_at + (t - 1u) * push.heads * push.d] = column_sum(kResult, turn - 1u);
    }
    const float v = used ? v_values[push.v_at + t * push.v_stride + head * push.d + column] : 0.0;
    const float beta = beta_values[push.beta_at + t * push.beta_stride + head];
    precise const float correction = (v - column_sum(kRead, turn)) * beta;
    keep_sum(kResult, turn, write_column(correction, k_at, q_at));
  }
  barrier();
  if (!used) return;
  if (part == 0u) {
    out_values[out_at + (run.end - 1u) * push.heads * push.d] = column_sum(kResult, run.end - 1u - run.first);
  }
  store_column(state, push.d);
}
