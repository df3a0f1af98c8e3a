#version 450
#extension GL_GOOGLE_include_directive : require
// alpha_p x^2 + beta x where x > 0, else alpha_n (exp(min(x, eps)) - 1 - x) + beta x. NaN stays NaN.

#include "glsl/common.glsl"
#include "glsl/math.glsl"
layout(push_constant) uniform Push {
  uint n, count_at, fixed_rows, x_at, x_stride, out_at;
  float alpha_n, alpha_p, beta, eps;
} push;

float f(float x) {
  precise const float linear = x * push.beta, square = fma(x * push.alpha_p, x, linear);
  if (x > 0.0) return square;
  precise const float bend = fma(expm1_of(x > push.eps ? push.eps : x) - x, push.alpha_n, linear);
  return bend;
}
#include "glsl/map.glsl"
