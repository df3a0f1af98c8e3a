#version 450
#extension GL_GOOGLE_include_directive : require
// sigmoid(sign(s) sqrt(max(|s|, 1e-6))), s = a . b / sqrt(d); one workgroup per vector. Near 0 the root multiplies the
// error of s, so sums are kept as two floats.

layout(local_size_x = 64) in;
#include "glsl/common.glsl"
#include "glsl/math.glsl"
layout(set = 0, binding = 1, std430) readonly buffer A { float a_values[]; };       // [T, h, d]
layout(set = 0, binding = 2, std430) readonly buffer B { float b_values[]; };       // [T, h, d]
layout(set = 0, binding = 3, std430) writeonly buffer Out { float out_values[]; };  // [T, h, 1]
layout(push_constant) uniform Push {
  uint heads, d, count_at, fixed_rows, a_at, a_stride, b_at, b_stride, out_at;
  float root_of_d, least;
} push;

const uint kLanes = 64u;
shared vec2 sums[kLanes];

vec2 add(vec2 a, vec2 b) {
  precise const float sum = a.x + b.x, part = sum - a.x;
  precise const float lost = (a.x - (sum - part)) + (b.x - part);
  precise const float low = (a.y + b.y) + lost;
  return vec2(sum, low);
}

void main() {
  const uint head = gl_WorkGroupID.x, row = gl_WorkGroupID.y, lane = gl_LocalInvocationID.x;
  if (row >= row_count(push.count_at, push.fixed_rows)) return;
  const uint a_at = push.a_at + row * push.a_stride + head * push.d;
  const uint b_at = push.b_at + row * push.b_stride + head * push.d;
  vec2 sum = vec2(0.0);
  for (uint i = lane; i < push.d; i += kLanes) sum = add(sum, exact_product(a_values[a_at + i], b_values[b_at + i]));
  sums[lane] = sum;
  for (uint stride = kLanes / 2u; stride > 0u; stride >>= 1) {
    barrier();
    if (lane < stride) sums[lane] = add(sums[lane], sums[lane + stride]);
  }
  if (lane > 0u) return;
  precise const float s = sums[0].x + sums[0].y;
  const float size = divide(abs(s), push.root_of_d), root = root_of(size > push.least ? size : push.least);
  out_values[push.out_at + row * push.heads + head] = sigmoid_of(s == 0.0 ? 0.0 : s < 0.0 ? -root : root);
}
