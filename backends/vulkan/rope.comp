#version 450
#extension GL_GOOGLE_include_directive : require
// Rotates pairs of dimensions of each head by the angles of the table; the rest of the head is copied.

layout(local_size_x = 64) in;
layout(constant_id = 0) const bool kInterleaved = false;
#include "glsl/common.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X { float x_values[]; };
layout(set = 0, binding = 2, std430) readonly buffer Table { float table[]; };  // [T, pairs, 2]
layout(set = 0, binding = 3, std430) writeonly buffer Out { float out_values[]; };
layout(push_constant) uniform Push { uint heads, dim, pairs, x_at, x_stride, table_at, out_at; } push;

void main() {
  const uint i = gl_GlobalInvocationID.x, token = gl_WorkGroupID.y;
  if (i >= push.heads * push.dim || token >= n_tokens()) return;
  const uint head = i / push.dim, at = i % push.dim, n_dims = 2u * push.pairs;
  const uint from = push.x_at + token * push.x_stride + head * push.dim;
  const float own = x_values[from + at];
  float y = own;
  if (at < n_dims) {
    const bool second = kInterleaved ? (at & 1u) != 0u : at >= push.pairs;
    const uint pair = kInterleaved ? at >> 1 : second ? at - push.pairs : at;
    const uint other_at = kInterleaved ? at ^ 1u : second ? at - push.pairs : at + push.pairs;
    const float other = x_values[from + other_at];
    const uint angle = push.table_at + (token * push.pairs + pair) * 2u;
    const float side = other * table[angle + 1u];
    y = fma(own, table[angle], second ? side : -side);
  }
  out_values[push.out_at + token * push.heads * push.dim + i] = y;
}
