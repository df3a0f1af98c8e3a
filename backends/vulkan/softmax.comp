#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef SUBGROUPS
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
// exp(x - largest) / sum. Each lane finds the largest value itself: vectors are short.

#include "glsl/common.glsl"
#include "glsl/math.glsl"
#include "glsl/norm.glsl"

void main() {
  const uint row = gl_WorkGroupID.y, which = gl_WorkGroupID.x;
  if (row >= row_count(push.count_at, push.fixed_rows)) return;
  const uint x_at = push.x_at + row * push.x_stride + which * push.d;
  const uint out_at = push.out_at + (row * push.per_row + which) * push.d;
  float largest = -infinity();
  for (uint i = 0u; i < push.d; ++i) largest = max(largest, x_values[x_at + i]);
  float part = 0.0;
  for (uint i = gl_LocalInvocationID.x; i < push.d; i += kLanes) part += exp_of(x_values[x_at + i] - largest);
  const float sum = reduce_add(part);
  for (uint i = gl_LocalInvocationID.x; i < push.d; i += kLanes) {
    out_values[out_at + i] = divide(exp_of(x_values[x_at + i] - largest), sum);
  }
}
