#version 450
#extension GL_GOOGLE_include_directive : require
// For each head g, m values of a and then `width` values of b; b_step is 0 if b has one head for all. A lane copies one
// value; n is the row's length in out.

#include "glsl/common.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 1, std430) readonly buffer A { float a_values[]; };
layout(set = 0, binding = 2, std430) readonly buffer B { float b_values[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Out { float out_values[]; };
layout(push_constant) uniform Push {
  uint n, count_at, fixed_rows, a_at, a_stride, b_at, b_stride, b_step, out_at, m, width;
} push;

void main() {
  const uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
  if (i >= push.n || row >= row_count(push.count_at, push.fixed_rows)) return;
  const uint head = i / (push.m + push.width), at = i % (push.m + push.width);
  const float value = at < push.m ? a_values[push.a_at + row * push.a_stride + head * push.m + at]
                                  : b_values[push.b_at + row * push.b_stride + head * push.b_step + at - push.m];
  out_values[push.out_at + row * push.n + i] = value;
}
