#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Selective scan: a row of n state values per channel. Some lanes share a row: each has every kRowLanes-th value, in
// registers through the step. A sequence's tokens are taken kTile at a time: first their time steps and decays, for all
// rows of a head; then the recurrence, whose lanes store their sums in shared memory; then these are added.

layout(local_size_x = 128) in;
layout(constant_id = 0) const uint kN = 16;
layout(constant_id = 1) const uint kRowLanes = 4;  // a power of two
layout(constant_id = 2) const uint kPerLane = 4;   // values of a lane: n / kRowLanes, rounded up
layout(constant_id = 3) const uint kRows = 32;     // of a workgroup: 128 / kRowLanes
layout(constant_id = 4) const bool kPerValue = false;
layout(constant_id = 5) const bool kHasSkip = false;
#include "glsl/common.glsl"
#include "glsl/math.glsl"
#include "glsl/runs.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X { float x_values[]; };        // [T, heads, d]
layout(set = 0, binding = 2, std430) readonly buffer Dt { float dt_values[]; };      // [T, heads]
layout(set = 0, binding = 3, std430) readonly buffer B { float b_values[]; };        // [T, groups, n]
layout(set = 0, binding = 4, std430) readonly buffer C { float c_values[]; };        // [T, groups, n]
layout(set = 0, binding = 5, std430) readonly buffer A { float a_values[]; };        // [heads] or [heads, n]
layout(set = 0, binding = 6, std430) readonly buffer Skip { float skip_values[]; };  // [heads]
layout(set = 0, binding = 7, std430) writeonly buffer Out { float out_values[]; };   // [T, heads * d]
layout(set = 0, binding = 8, std430) buffer Slots { float slots[]; };                // [slots, .., heads, d, n]
layout(push_constant) uniform Push {
  States states;
  uint rows, d, per_group, x_at, x_stride, dt_at, dt_stride, b_at, b_stride, c_at, c_stride, a_at, skip_at, out_at;
} push;

const uint kLanes = 128u, kTile = 8u;
shared float steps[kTile * kRows], decays[kTile * kRows];
shared float sums[kTile * kLanes];  // [token, row, lane of the row]

float values[kPerLane], rates[kPerLane];

uint first_row() { return gl_WorkGroupID.x * kRows; }

// The time steps of `count` tokens from `token` on.
void prepare(uint token, uint count) {
  for (uint i = gl_LocalInvocationID.x; i < count * kRows; i += kLanes) {
    const uint row = first_row() + i % kRows, head = row / push.d;
    if (row >= push.rows) continue;
    steps[i] = softplus_of(dt_values[push.dt_at + (token + i / kRows) * push.dt_stride + head]);
    if (!kPerValue) decays[i] = exp_of(steps[i] * a_values[push.a_at + head]);
  }
}

// One token of this lane's row; `at` is the place of its time step.
float advance(uint token, uint at, uint row) {
  const uint group = row / push.d / push.per_group * kN, lane = gl_LocalInvocationID.x % kRowLanes;
  const uint b_at = push.b_at + token * push.b_stride + group, c_at = push.c_at + token * push.c_stride + group;
  const float step = steps[at], of_head = kPerValue ? 0.0 : decays[at];
  precise const float scaled = x_values[push.x_at + token * push.x_stride + row] * step;
  precise float sum = 0.0;
  [[unroll]] for (uint k = 0u; k < kPerLane; ++k) {
    const uint j = lane + k * kRowLanes;
    if (j >= kN) continue;
    const float decay = kPerValue ? exp_of(step * rates[k]) : of_head;
    precise const float next = fma(values[k], decay, b_values[b_at + j] * scaled);
    values[k] = next;
    sum = fma(next, c_values[c_at + j], sum);
  }
  return sum;
}

// Adds the sums of each row's lanes, and writes the results of `count` tokens from `token` on.
void finish(uint token, uint count) {
  for (uint stride = kRowLanes / 2u; stride > 0u; stride >>= 1) {
    for (uint i = gl_LocalInvocationID.x; i < count * kRows * stride; i += kLanes) {
      const uint at = i / stride * kRowLanes + i % stride;
      sums[at] += sums[at + stride];
    }
    barrier();
  }
  for (uint i = gl_LocalInvocationID.x; i < count * kRows; i += kLanes) {
    const uint row = first_row() + i % kRows, t = token + i / kRows;
    if (row >= push.rows) continue;
    const float skip = kHasSkip ? skip_values[push.skip_at + row / push.d] : 0.0;
    const float sum = sums[i * kRowLanes];
    out_values[push.out_at + t * push.rows + row] =
        kHasSkip ? fma(skip, x_values[push.x_at + t * push.x_stride + row], sum) : sum;
  }
}

void main() {
  const Run run = find_run(push.states, gl_WorkGroupID.y, kLanes);
  if (run.first == run.end) return;
  const uint own = gl_LocalInvocationID.x / kRowLanes, row = first_row() + own;
  const uint lane = gl_LocalInvocationID.x % kRowLanes, state = run.state + row * kN;
  const bool used = row < push.rows;
  [[unroll]] for (uint k = 0u; k < kPerLane; ++k) {
    const uint j = lane + k * kRowLanes;
    const bool inside = used && j < kN;
    values[k] = inside && !run.empty ? slots[state + j] : 0.0;
    rates[k] = inside && kPerValue ? a_values[push.a_at + row / push.d * kN + j] : 0.0;
  }
  for (uint token = run.first; token < run.end; token += kTile) {
    const uint count = min(kTile, run.end - token);
    barrier();
    prepare(token, count);
    barrier();
    for (uint t = 0u; t < count; ++t) {
      sums[t * kLanes + gl_LocalInvocationID.x] = used ? advance(token + t, t * kRows + own, row) : 0.0;
    }
    barrier();
    finish(token, count);
  }
  if (!used) return;
  [[unroll]] for (uint k = 0u; k < kPerLane; ++k) {
    const uint j = lane + k * kRowLanes;
    if (j < kN) slots[state + j] = values[k];
  }
}
