#version 450
#extension GL_GOOGLE_include_directive : require
// The row of the sequence's previous token. Only the workgroup of a sequence's first row uses the state.

layout(local_size_x = 64) in;
#include "glsl/common.glsl"
#include "glsl/runs.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X { float x_values[]; };       // [T, channels]
layout(set = 0, binding = 2, std430) writeonly buffer Out { float out_values[]; };  // [T, channels]
layout(set = 0, binding = 3, std430) buffer Slots { float slots[]; };               // [slots, .., channels]
layout(push_constant) uniform Push {
  States states;
  uint channels, x_at, x_stride, out_at;
} push;

void main() {
  const uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
  if (row >= n_tokens()) return;
  const uint sequence = uint(step_words[push.states.sequences_at + row]);
  const uint out_at = push.out_at + row * push.channels + i;
  if (row > 0u && is_of(push.states, row - 1u, sequence)) {
    if (i < push.channels) out_values[out_at] = x_values[push.x_at + (row - 1u) * push.x_stride + i];
    return;
  }
  const Run run = find_run(push.states, sequence, 64u);
  if (i >= push.channels) return;
  out_values[out_at] = run.empty ? 0.0 : slots[run.state + i];
  slots[run.state + i] = x_values[push.x_at + (run.end - 1u) * push.x_stride + i];
}
