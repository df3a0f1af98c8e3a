#version 450
#extension GL_GOOGLE_include_directive : require
// a + b; b has the shape of a, or is one row for all rows, or one value for each last dimension.

#include "glsl/common.glsl"
float f(float a, float b) { return a + b; }
#include "glsl/binary.glsl"
