#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef SUBGROUPS
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
// x / sqrt(mean(x^2) + eps) * weight.

#include "glsl/common.glsl"
#include "glsl/norm.glsl"

void main() {
  const uint row = gl_WorkGroupID.y, which = gl_WorkGroupID.x;
  if (row >= row_count(push.count_at, push.fixed_rows)) return;
  const uint x_at = push.x_at + row * push.x_stride + which * push.d;
  const uint out_at = push.out_at + (row * push.per_row + which) * push.d;
  const float factor = 1.0 / sqrt(sum_of(x_at, 0.0, true) / float(push.d) + push.parameter);
  for (uint i = gl_LocalInvocationID.x; i < push.d; i += kLanes) {
    const float y = x_values[x_at + i] * factor;
    out_values[out_at + i] = kHasWeight ? y * weight_values[push.weight_at + i] : y;
  }
}
