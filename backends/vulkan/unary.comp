#version 450
#extension GL_GOOGLE_include_directive : require
// f(x).

#include "glsl/common.glsl"
#include "glsl/math.glsl"
#include "glsl/activation.glsl"
layout(push_constant) uniform Push { uint n, count_at, fixed_rows, x_at, x_stride, out_at; float unused[2]; } push;
float f(float x) { return activate(x); }
#include "glsl/map.glsl"
