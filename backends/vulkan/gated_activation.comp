#version 450
#extension GL_GOOGLE_include_directive : require
// f(gate) * up, within the limits of GatedActivationParams (ggml-like/op.h). NaN stays NaN.

layout(constant_id = 1) const bool kLimited = false;
#include "glsl/common.glsl"
#include "glsl/math.glsl"
#include "glsl/activation.glsl"
#include "glsl/binary.glsl"

float at_most(float limit, float x) { return x > limit ? limit : x; }

float f(float gate, float up) {
  if (!kLimited) return activate(gate) * up;
  const float limited = up < -push.up_limit ? -push.up_limit : at_most(push.up_limit, up);
  precise const float shifted = limited + push.up_offset;
  return at_most(push.activation_limit, activate(at_most(push.gate_limit, gate))) * shifted;
}
