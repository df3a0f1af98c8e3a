#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef SUBGROUPS
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
// sqrt(mean(x^2)).

#include "glsl/common.glsl"
#include "glsl/norm.glsl"

void main() {
  const uint row = gl_WorkGroupID.y, which = gl_WorkGroupID.x;
  if (row >= row_count(push.count_at, push.fixed_rows)) return;
  const float sum = sum_of(push.x_at + row * push.x_stride + which * push.d, 0.0, true);
  if (gl_LocalInvocationID.x == 0u) out_values[push.out_at + row * push.per_row + which] = sqrt(sum / float(push.d));
}
