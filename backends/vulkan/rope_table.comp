#version 450
#extension GL_GOOGLE_include_directive : require
// Writes magnitude times cosine and sine of position * step for each pair of dimensions. Angles are 64-bit fractions of
// a turn, so that the product with any position drops whole turns exactly. A step is the sum of two floats (high + low,
// in turns), so that dividing it by a frequency factor keeps 46 bits.

layout(local_size_x = 64) in;
layout(constant_id = 0) const bool kHasFactors = false;
#include "glsl/common.glsl"
#include "glsl/math.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Steps { float steps[]; };  // [pairs, 2]
layout(set = 0, binding = 2, std430) readonly buffer Factors { float factors[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Out { float out_values[]; };
layout(push_constant) uniform Push { uint pairs, positions_at, period, steps_at, factors_at, out_at; float magnitude; } push;

// x as a 64-bit fraction (high, low) without whole turns. Rounded down if x has bits below 2^-64.
uvec2 fraction64(float x) {
  const uint bits = floatBitsToUint(x);
  const int exponent = int(bits >> 23 & 0xffu);
  if (exponent == 0) return uvec2(0u);
  const uint mantissa = bits & 0x7fffffu | 0x800000u;
  const int shift = exponent - 127 - 23 + 64;  // value = mantissa * 2^(shift - 64)
  uvec2 f = uvec2(0u);
  if (shift >= 32) f.x = shift < 64 ? mantissa << (shift - 32) : 0u;
  else if (shift > 0) f = uvec2(mantissa >> (32 - shift), mantissa << shift);
  else if (shift > -24) f.y = mantissa >> -shift;
  if ((bits & 0x80000000u) != 0u) {
    const uint low = ~f.y + 1u;
    f = uvec2(~f.x + (low == 0u ? 1u : 0u), low);
  }
  return f;
}

void main() {
  const uint pair = gl_GlobalInvocationID.x, token = gl_WorkGroupID.y;
  if (pair >= push.pairs || token >= n_tokens()) return;
  float high = steps[push.steps_at + 2u * pair], low = steps[push.steps_at + 2u * pair + 1u];
  if (kHasFactors) {
    const float factor = factors[push.factors_at + pair];
    const float q = high / factor;
    const vec2 product = exact_product(q, factor);
    precise const float rest = ((high - product.x) - product.y) + low;
    low = rest / factor;
    high = q;
  }
  const uvec2 a = fraction64(high), b = fraction64(low);
  uint carry;
  const uint step_low = uaddCarry(a.y, b.y, carry);
  const uint step_high = a.x + b.x + carry;
  const uint position = uint(step_words[push.positions_at + token]) / push.period * push.period;
  uint product_high, product_low;
  umulExtended(step_low, position, product_high, product_low);
  const uint turn = step_high * position + product_high;  // in units of 2^-32 turns, rounded down

  // The number of quarter turns, and the remaining angle in [-pi/4, pi/4].
  const uint quarter = (turn + 0x20000000u) >> 30;
  const float r = float(int(turn - (quarter << 30))) * 1.4629180792671596e-9;  // 2 pi / 2^32
  const float z = r * r;
  float s = fma(-1.9841270e-4, z, 8.3333333e-3);
  s = fma(2.7557319e-6 * z, z * z, fma(s, z, -1.6666667e-1));
  const float sine = fma(s * z, r, r);
  float c = fma(2.4801587e-5, z, -1.3888889e-3);
  c = fma(-2.7557319e-7 * z, z * z, fma(c, z, 4.1666667e-2));
  const float cosine = fma(c * z, z, fma(-0.5, z, 1.0));
  const bool odd = (quarter & 1u) != 0u;
  float x = odd ? -sine : cosine, y = odd ? cosine : sine;
  if ((quarter & 2u) != 0u) {
    x = -x;
    y = -y;
  }
  const uint to = push.out_at + (token * push.pairs + pair) * 2u;
  out_values[to] = x * push.magnitude;
  out_values[to + 1u] = y * push.magnitude;
}
