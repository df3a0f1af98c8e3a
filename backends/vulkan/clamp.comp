#version 450
#extension GL_GOOGLE_include_directive : require
// The nearest number in [low, high]; NaN stays NaN.

#include "glsl/common.glsl"
layout(push_constant) uniform Push { uint n, count_at, fixed_rows, x_at, x_stride, out_at; float low, high; } push;
float f(float x) { return x < push.low ? push.low : x > push.high ? push.high : x; }
#include "glsl/map.glsl"
