#version 450
#extension GL_GOOGLE_include_directive : require
// out[row][o][i] = the sum over s, in order, of weights[row][o][s] * x[row][s][i].

layout(local_size_x = 64) in;
#include "glsl/common.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X { float x_values[]; };        // [T, streams, d]
layout(set = 0, binding = 2, std430) readonly buffer Weights { float weights[]; };  // [T, n / d, streams]
layout(set = 0, binding = 3, std430) writeonly buffer Out { float out_values[]; };  // [T, n]
layout(push_constant) uniform Push {
  uint n, d, streams, count_at, fixed_rows, x_at, x_stride, weights_at, weights_stride, out_at;
} push;

void main() {
  const uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
  if (i >= push.n || row >= row_count(push.count_at, push.fixed_rows)) return;
  const uint from = push.x_at + row * push.x_stride + i % push.d;
  const uint factors = push.weights_at + row * push.weights_stride + i / push.d * push.streams;
  precise float sum = 0.0;
  for (uint s = 0u; s < push.streams; ++s) {
    const float x = x_values[from + s * push.d], w = weights[factors + s];
    sum = s == 0u ? w * x : fma(w, x, sum);
  }
  out_values[push.out_at + row * push.n + i] = sum;
}
