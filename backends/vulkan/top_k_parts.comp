#version 450
#extension GL_GOOGLE_include_directive : require
// The k best logits of a part of a row, and the sum of exp(logit - best logit) over the part; one workgroup per part.
// top_k merges the parts.

layout(local_size_x = 256) in;
#include "glsl/common.glsl"
#include "glsl/math.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X { float x_values[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Parts { uint parts[]; };  // [rows, n_parts, values | ids | sum]
layout(push_constant) uniform Push {
  uint n, k, n_parts, count_at, fixed_rows, x_at, x_stride, parts_at;
} push;
#include "glsl/select.glsl"

const uint kPart = 4096u;

uint x_at, first_id, part_at;

float value_at(uint candidate) { return x_values[x_at + candidate]; }
uint index_at(uint candidate) { return first_id + candidate; }
void put(uint place, float value, uint index) {
  parts[part_at + place] = floatBitsToUint(value);
  parts[part_at + push.k + place] = index;
}

void main() {
  const uint part = gl_WorkGroupID.x, row = gl_WorkGroupID.y, lane = gl_LocalInvocationID.x;
  if (row >= row_count(push.count_at, push.fixed_rows)) return;
  first_id = part * kPart;
  x_at = push.x_at + row * push.x_stride + first_id;
  part_at = push.parts_at + (row * push.n_parts + part) * (2u * push.k + 1u);
  const uint n = min(push.n - first_id, kPart);
  const float best = select_best(n, push.k);
  float sum = 0.0;
  for (uint i = lane; i < n; i += kSelectLanes) {
    const float x = value_at(i);
    if (x != -infinity()) sum += exp_of(x - best);
  }
  sum = sum_of_lanes(sum);
  if (lane == 0u) parts[part_at + 2u * push.k] = floatBitsToUint(sum);
}
