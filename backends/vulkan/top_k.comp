#version 450
#extension GL_GOOGLE_include_directive : require
// The k largest logits of a row in descending order, and the log of the sum of all exponentials, from the results of
// top_k_parts for the parts of the row; one workgroup per row.

layout(local_size_x = 256) in;
#include "glsl/common.glsl"
#include "glsl/math.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Parts { uint parts[]; };  // [rows, n_parts, values | ids | sum]
layout(set = 0, binding = 2, std430) writeonly buffer Ids { int ids[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Values { float values[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Sum { float log_sums[]; };
layout(push_constant) uniform Push {
  uint k, n_parts, count_at, fixed_rows, parts_at, ids_at, values_at, sums_at;
} push;
#include "glsl/select.glsl"

uint row;

uint part_at(uint part) { return push.parts_at + (row * push.n_parts + part) * (2u * push.k + 1u); }
float value_at(uint candidate) { return uintBitsToFloat(parts[part_at(candidate / push.k) + candidate % push.k]); }
uint index_at(uint candidate) { return parts[part_at(candidate / push.k) + push.k + candidate % push.k]; }
void put(uint place, float value, uint index) {
  ids[push.ids_at + row * push.k + place] = int(index);
  values[push.values_at + row * push.k + place] = value;
}

void main() {
  const uint lane = gl_LocalInvocationID.x;
  row = gl_WorkGroupID.x;
  if (row >= row_count(push.count_at, push.fixed_rows)) return;
  const float best = select_best(push.n_parts * push.k, push.k);
  float sum = 0.0;
  for (uint part = lane; part < push.n_parts; part += kSelectLanes) {
    const float part_best = value_at(part * push.k), part_sum = uintBitsToFloat(parts[part_at(part) + 2u * push.k]);
    if (part_sum != 0.0) sum += part_sum * exp_of(part_best - best);
  }
  sum = sum_of_lanes(sum);
  // No sum: every logit is -infinity.
  if (lane == 0u) log_sums[push.sums_at + row] = sum == 0.0 ? uintBitsToFloat(0x7fc00000u) : best + log_of(sum);
}
