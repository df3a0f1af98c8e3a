#version 450
#extension GL_GOOGLE_include_directive : require
// The k best logits of a row, best first, and the log of the sum of all exponentials; one workgroup per row. NaN comes
// last, ties go to the lower index. Each pass finds the best one behind the one before.

layout(local_size_x = 256) in;
#include "glsl/common.glsl"
#include "glsl/math.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X { float x_values[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Ids { int ids[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Values { float values[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Sum { float log_sums[]; };
layout(push_constant) uniform Push {
  uint n, k, count_at, fixed_rows, x_at, x_stride, ids_at, values_at, sums_at;
} push;

const uint kLanes = 256u;
shared float best_value[kLanes];
shared uint best_index[kLanes];

bool better(float a, uint i, float b, uint j) {
  if (j == kFixedRows) return i != kFixedRows;
  if (i == kFixedRows) return false;
  const bool nan_a = isnan(a), nan_b = isnan(b);
  if (nan_a || nan_b) return nan_a == nan_b ? i < j : nan_b;
  return a != b ? a > b : i < j;
}

// log(x) for x >= 1: the logarithm of the hardware as a start, one step of Newton's method on exp.
float log_of(float x) {
  const float y = log(x);
  return y + (x * exp_of(-y) - 1.0);
}

void main() {
  const uint row = gl_WorkGroupID.x, lane = gl_LocalInvocationID.x;
  if (row >= row_count(push.count_at, push.fixed_rows)) return;
  const uint x_at = push.x_at + row * push.x_stride;
  float last_value = 0.0, largest = 0.0;
  uint last_index = kFixedRows;
  for (uint pass = 0u; pass < push.k; ++pass) {
    float value = 0.0;
    uint index = kFixedRows;
    for (uint i = lane; i < push.n; i += kLanes) {
      const float x = x_values[x_at + i];
      const bool open = pass == 0u || better(last_value, last_index, x, i);
      if (open && better(x, i, value, index)) {
        value = x;
        index = i;
      }
    }
    best_value[lane] = value;
    best_index[lane] = index;
    barrier();
    for (uint stride = kLanes / 2u; stride > 0u; stride >>= 1) {
      if (lane < stride && better(best_value[lane + stride], best_index[lane + stride], best_value[lane], best_index[lane])) {
        best_value[lane] = best_value[lane + stride];
        best_index[lane] = best_index[lane + stride];
      }
      barrier();
    }
    last_value = best_value[0];
    last_index = best_index[0];
    if (pass == 0u) largest = last_value;
    if (lane == 0u) {
      ids[push.ids_at + row * push.k + pass] = int(last_index);
      values[push.values_at + row * push.k + pass] = last_value;
    }
    barrier();
  }
  float sum = 0.0;
  for (uint i = lane; i < push.n; i += kLanes) sum += exp_of(x_values[x_at + i] - largest);
  best_value[lane] = sum;
  barrier();
  for (uint stride = kLanes / 2u; stride > 0u; stride >>= 1) {
    if (lane < stride) best_value[lane] += best_value[lane + stride];
    barrier();
  }
  if (lane == 0u) log_sums[push.sums_at + row] = largest + log_of(best_value[0]);
}
