#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef SUBGROUPS
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
// max(x - mean - factor * deviation, 0), the deviation being that of d - 1 degrees of freedom. NaN stays NaN.

#include "glsl/common.glsl"
#include "glsl/norm.glsl"

void main() {
  const uint row = gl_WorkGroupID.y, which = gl_WorkGroupID.x;
  if (row >= row_count(push.count_at, push.fixed_rows)) return;
  const uint x_at = push.x_at + row * push.x_stride + which * push.d;
  const uint out_at = push.out_at + (row * push.per_row + which) * push.d;
  const float mean = sum_of(x_at, 0.0, false) / float(push.d);
  const float cutoff = push.parameter * sqrt(sum_of(x_at, mean, true) / float(push.d - 1u));
  for (uint i = gl_LocalInvocationID.x; i < push.d; i += kLanes) {
    precise const float above = x_values[x_at + i] - mean - cutoff;
    out_values[out_at + i] = above < 0.0 ? 0.0 : above;
  }
}
