#version 450
#extension GL_GOOGLE_include_directive : require
// The rows of x [T, d] that are outputs.

layout(local_size_x = 64) in;
#include "glsl/common.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X { uint x_words[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Out { uint out_words[]; };
layout(push_constant) uniform Push { uint d, outputs_at, x_at, x_stride, out_at; } push;

void main() {
  const uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
  if (i >= push.d || row >= uint(step_words[1])) return;
  const uint from = uint(step_words[push.outputs_at + row]);
  out_words[push.out_at + row * push.d + i] = x_words[push.x_at + from * push.x_stride + i];
}
