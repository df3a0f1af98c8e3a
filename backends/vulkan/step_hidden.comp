#version 450
#extension GL_GOOGLE_include_directive : require
// The hidden states [T, d] that come with the step's tokens.

layout(local_size_x = 64) in;
#include "glsl/common.glsl"
layout(set = 0, binding = 1, std430) writeonly buffer Out { int out_words[]; };
layout(push_constant) uniform Push { uint d, hidden_at, out_at; } push;

void main() {
  const uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
  if (i >= push.d || row >= n_tokens()) return;
  out_words[push.out_at + row * push.d + i] = step_words[push.hidden_at + row * push.d + i];
}
