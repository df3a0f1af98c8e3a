#version 450
#extension GL_GOOGLE_include_directive : require
// a * b.

#include "glsl/common.glsl"
float f(float a, float b) { return a * b; }
#include "glsl/binary.glsl"
