#version 450
#extension GL_GOOGLE_include_directive : require
// x * factor.

#include "glsl/common.glsl"
layout(push_constant) uniform Push { uint n, count_at, fixed_rows, x_at, x_stride, out_at; float factor, unused; } push;
float f(float x) { return x * push.factor; }
#include "glsl/map.glsl"
