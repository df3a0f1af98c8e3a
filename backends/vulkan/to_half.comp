#version 450
#extension GL_GOOGLE_include_directive : require
// Converts rows of activations to fp16, each row times a power of two that makes its largest magnitude at least 2^14,
// so that no row overflows or vanishes. A row becomes k / 2 words, then the inverse of that power and three words of
// padding. One workgroup per row.

layout(local_size_x = 128) in;
#include "glsl/common.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X { float x_values[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Out { uint out_words[]; };
layout(push_constant) uniform Push {
  uint k, count_at, fixed_rows, per_row, x_at, x_stride, out_at, out_stride;
} push;

shared uint largest[128];  // as bits

void main() {
  const uint lane = gl_LocalInvocationID.x, row = gl_WorkGroupID.y * push.per_row + gl_WorkGroupID.x;
  if (row >= row_count(push.count_at, push.fixed_rows) * push.per_row) return;
  const uint from = push.x_at + row * push.x_stride, to = push.out_at + row * push.out_stride;
  uint most = 0u;
  for (uint i = lane; i < push.k; i += 128u) most = max(most, floatBitsToUint(x_values[from + i]) & 0x7fffffffu);
  largest[lane] = most;
  barrier();
  for (uint stride = 64u; stride > 0u; stride >>= 1) {
    if (lane < stride) largest[lane] = max(largest[lane], largest[lane + stride]);
    barrier();
  }
  // A row is not scaled if it has a NaN or an infinity, or only zeros and denormals.
  const uint exponent = largest[0] >> 23;
  const uint power = exponent == 0u || exponent == 255u ? 127u : min(268u - exponent, 253u);
  const float factor = uintBitsToFloat(power << 23);
  for (uint i = lane; i < push.k / 2u; i += 128u) {
    const float a = x_values[from + 2u * i] * factor, b = x_values[from + 2u * i + 1u] * factor;
    out_words[to + i] = float_to_half(a) | float_to_half(b) << 16;
  }
  if (lane == 0u) out_words[to + push.k / 2u] = 254u - power << 23;
}
