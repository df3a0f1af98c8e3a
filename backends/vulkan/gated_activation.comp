#version 450
#extension GL_GOOGLE_include_directive : require
// f(gate) * up.

#include "glsl/common.glsl"
#include "glsl/math.glsl"
#include "glsl/activation.glsl"
float f(float a, float b) { return activate(a) * b; }
#include "glsl/binary.glsl"
