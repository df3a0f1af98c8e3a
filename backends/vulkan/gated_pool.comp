#version 450
#extension GL_GOOGLE_include_directive : require
// The weighted mean of the rows of a block of positions, up to each token; one lane per channel and sequence.

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint kParts = 1;  // 1 or 2
layout(constant_id = 1) const bool kHasOffsets = false;
#include "glsl/common.glsl"
#include "glsl/math.glsl"
#include "glsl/runs.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X { float x_values[]; };             // [T, parts, d]
layout(set = 0, binding = 2, std430) readonly buffer Gates { float gate_values[]; };      // [T, parts, d]
layout(set = 0, binding = 3, std430) readonly buffer Offsets { float offset_values[]; };  // [block, parts * d]
layout(set = 0, binding = 4, std430) writeonly buffer Out { float out_values[]; };        // [T, d]
layout(set = 0, binding = 5, std430) buffer Slots { float slots[]; };                     // [slots, .., parts, 3, d]
layout(push_constant) uniform Push {
  States states;
  uint d, block, x_at, x_stride, gates_at, gates_stride, offsets_at, out_at;
} push;

// For each part: the largest gate, the sum of the weights relative to it, and the sum of the weighted rows.
vec3 sums[kParts];

void add_row(uint part, float gate, float x) {
  const vec3 old = sums[kParts - 1u - part];  // the last part belongs to the current block
  const bool any = old.y > 0.0;
  const float best = any ? max(old.x, gate) : gate;
  const float before = any ? exp_of(old.x - best) : 0.0, weight = exp_of(gate - best);
  precise const float total = fma(old.y, before, weight), rows = fma(old.z, before, x * weight);
  sums[kParts - 1u - part] = vec3(best, total, rows);
}

void main() {
  const uint i = gl_GlobalInvocationID.x;
  const Run run = find_run(push.states, gl_WorkGroupID.y, 64u);
  if (run.first == run.end || i >= push.d) return;
  for (uint p = 0u; p < kParts; ++p) {
    const uint at = run.state + 3u * p * push.d + i;
    sums[p] = run.empty ? vec3(0.0) : vec3(slots[at], slots[at + push.d], slots[at + 2u * push.d]);
  }
  for (uint t = run.first; t < run.end; ++t) {
    const uint place = uint(step_words[push.states.positions_at + t]) % push.block;
    for (uint p = 0u; p < kParts; ++p) {
      float gate = gate_values[push.gates_at + t * push.gates_stride + p * push.d + i];
      if (kHasOffsets) gate += offset_values[push.offsets_at + (place * kParts + p) * push.d + i];
      add_row(p, gate, x_values[push.x_at + t * push.x_stride + p * push.d + i]);
    }
    out_values[push.out_at + t * push.d + i] = divide(sums[0].z, sums[0].y);
    if (place + 1u < push.block) continue;
    if (kParts > 1u) sums[0] = sums[kParts - 1u];
    sums[kParts - 1u] = vec3(0.0);
  }
  for (uint p = 0u; p < kParts; ++p) {
    const uint at = run.state + 3u * p * push.d + i;
    slots[at] = sums[p].x;
    slots[at + push.d] = sums[p].y;
    slots[at + 2u * push.d] = sums[p].z;
  }
}
