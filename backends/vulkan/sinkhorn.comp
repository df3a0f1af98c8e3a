#version 450
#extension GL_GOOGLE_include_directive : require
// Makes matrices [n, n] doubly stochastic, and transposes them. A lane handles a row and a column of a matrix in turn;
// a workgroup has as many matrices as fit its lanes.

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint kN = 4;          // at most 64
layout(constant_id = 1) const uint kValues = 256;  // of the workgroup's matrices
#include "glsl/common.glsl"
#include "glsl/math.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X { float x_values[]; };       // [T, n, n]
layout(set = 0, binding = 2, std430) writeonly buffer Out { float out_values[]; };  // [T, n, n]
layout(push_constant) uniform Push {
  uint iterations, count_at, fixed_rows, x_at, x_stride, out_at;
  float eps;
} push;

shared float m[kValues];

// Divides n values `step` apart by their sum plus eps.
void normalize(uint first, uint step) {
  precise float sum = push.eps;
  for (uint i = 0u; i < kN; ++i) sum += m[first + i * step];
  for (uint i = 0u; i < kN; ++i) m[first + i * step] = divide(m[first + i * step], sum);
}

void softmax(uint first, uint from) {
  float best = x_values[from];
  for (uint i = 1u; i < kN; ++i) best = max(best, x_values[from + i]);
  precise float sum = 0.0;
  for (uint i = 0u; i < kN; ++i) {
    m[first + i] = exp_of(x_values[from + i] - best);
    sum += m[first + i];
  }
  for (uint i = 0u; i < kN; ++i) m[first + i] = divide(m[first + i], sum) + push.eps;
}

void main() {
  const uint matrices = 64u / kN, own = gl_LocalInvocationID.x / kN, i = gl_LocalInvocationID.x % kN;
  const uint row = gl_WorkGroupID.x * matrices + own;
  const bool used = own < matrices && row < row_count(push.count_at, push.fixed_rows);
  const uint first = own * kN * kN;
  if (used) softmax(first + i * kN, push.x_at + row * push.x_stride + i * kN);
  for (uint k = 0u; k < push.iterations; ++k) {
    if (k > 0u) {
      barrier();
      if (used) normalize(first + i * kN, 1u);
    }
    barrier();
    if (used) normalize(first + i, kN);
  }
  if (!used) return;
  // This lane's column, as a row.
  for (uint r = 0u; r < kN; ++r) out_values[push.out_at + row * kN * kN + i * kN + r] = m[first + r * kN + i];
}
