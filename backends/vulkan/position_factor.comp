#version 450
#extension GL_GOOGLE_include_directive : require
// 1 + scale * ln(1 + floor((p + offset) / interval)) of each token's position p.

layout(local_size_x = 64) in;
#include "glsl/common.glsl"
#include "glsl/math.glsl"
layout(set = 0, binding = 1, std430) writeonly buffer Out { float out_values[]; };
layout(push_constant) uniform Push { uint positions_at, interval, offset, out_at; float scale; } push;

// 1 <= n < 2^24.
float log_of(uint n) {
  const int exponent = findMSB(n);
  const float mantissa = float(n) * uintBitsToFloat(uint(127 - exponent) << 23);  // in [1, 2)
  return fma(float(exponent), 0.693147181, log1p_of(mantissa - 1.0));
}

void main() {
  const uint token = gl_GlobalInvocationID.x;
  if (token >= n_tokens()) return;
  const uint position = uint(step_words[push.positions_at + token]);
  out_values[push.out_at + token] = fma(push.scale, log_of(1u + (position + push.offset) / push.interval), 1.0);
}
