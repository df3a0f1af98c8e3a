#version 450
#extension GL_GOOGLE_include_directive : require
// Quantizes rows of activations to int8 as defined by ggml-like/quant/activation.h: each kBlock values (32 or 256)
// share the scale d = largest magnitude / 127. A row becomes k / 4 words of codes, then for each 16 values d and d *
// (the sum of their codes), the form that glsl/product_int8.glsl reads. A workgroup takes 256 values of one row.

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint kBlock = 32;
#include "glsl/common.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X { float x_values[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Out { uint out_words[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Scales { float out_floats[]; };
layout(push_constant) uniform Push {
  uint k, count_at, fixed_rows, per_row, x_at, x_stride, out_at, out_stride;
} push;
#include "glsl/math.glsl"

shared uint largest[64];  // as bits, which sort like magnitudes; infinity and NaN are the largest
shared int sums[64];

void main() {
  const uint lane = gl_LocalInvocationID.x, row = gl_WorkGroupID.z * push.per_row + gl_WorkGroupID.y;
  if (row >= row_count(push.count_at, push.fixed_rows) * push.per_row) return;
  const uint first = 256u * gl_WorkGroupID.x + 4u * lane;
  vec4 x = vec4(0.0);
  if (first < push.k) {
    const uint at = push.x_at + row * push.x_stride + first;
    x = vec4(x_values[at], x_values[at + 1u], x_values[at + 2u], x_values[at + 3u]);
  }
  const uvec4 bits = floatBitsToUint(x) & 0x7fffffffu;
  largest[lane] = max(max(bits.x, bits.y), max(bits.z, bits.w));
  barrier();
  const uint lanes = kBlock / 4u;  // the lanes that share a scale
  for (uint stride = lanes / 2u; stride > 0u; stride >>= 1) {
    if (lane % lanes < stride) largest[lane] = max(largest[lane], largest[lane + stride]);
    barrier();
  }
  const uint most = largest[lane / lanes * lanes];
  // A block with NaN or infinity becomes NaN; a block for which 127 / largest overflows becomes zero.
  const bool finite = most < 0x7f800000u, vanishes = most <= 0x027e0000u;  // 127 * 2^-128
  const float d = finite ? divide(uintBitsToFloat(most), 127.0) : uintBitsToFloat(0x7fc00000u);
  ivec4 code = ivec4(0);
  if (finite && !vanishes) {
    precise const vec4 scaled = x * divide(127.0, uintBitsToFloat(most));
    code = ivec4(clamp(roundEven(scaled), -127.0, 127.0));
  }
  sums[lane] = code.x + code.y + code.z + code.w;
  barrier();
  if (first >= push.k) return;
  const uint to = push.out_at + row * push.out_stride;
  out_words[to + first / 4u] = uint((code.x & 0xff) | (code.y & 0xff) << 8 | (code.z & 0xff) << 16 | code.w << 24);
  if (lane % 4u == 0u) {
    const int sum = sums[lane] + sums[lane + 1u] + sums[lane + 2u] + sums[lane + 3u];
    const uint pair = to + push.k / 4u + first / 8u;
    out_floats[pair] = d;
    out_floats[pair + 1u] = d * float(sum);
  }
}
