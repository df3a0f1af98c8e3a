#version 450
#extension GL_GOOGLE_include_directive : require
// The weighted sum of the experts' outputs, in the order of their router rank.

layout(local_size_x = 64) in;
#include "glsl/common.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Y { float y_values[]; };        // [T, u, d]
layout(set = 0, binding = 2, std430) readonly buffer Weights { float weights[]; };  // [T, u]
layout(set = 0, binding = 3, std430) writeonly buffer Out { float out_values[]; };  // [T, d]
layout(push_constant) uniform Push { uint d, used, count_at, fixed_rows, y_at, weights_at, out_at; } push;

void main() {
  const uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
  if (i >= push.d || row >= row_count(push.count_at, push.fixed_rows)) return;
  precise float sum = 0.0;
  for (uint u = 0u; u < push.used; ++u) {
    const float y = y_values[push.y_at + (row * push.used + u) * push.d + i];
    const float w = weights[push.weights_at + row * push.used + u];
    sum = u == 0u ? w * y : fma(w, y, sum);
  }
  out_values[push.out_at + row * push.d + i] = sum;
}
