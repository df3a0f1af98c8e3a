#version 450
#extension GL_GOOGLE_include_directive : require
// out[row][g * count + i] = x[row][g * width + begin + i]. A lane copies one value; n is the row's length in out.

#include "glsl/common.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 1, std430) readonly buffer X { float x_values[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Out { float out_values[]; };
layout(push_constant) uniform Push {
  uint n, count_at, fixed_rows, x_at, x_stride, out_at, width, begin, count;
} push;

void main() {
  const uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
  if (i >= push.n || row >= row_count(push.count_at, push.fixed_rows)) return;
  const uint column = i / push.count * push.width + push.begin + i % push.count;
  out_values[push.out_at + row * push.n + i] = x_values[push.x_at + row * push.x_stride + column];
}
