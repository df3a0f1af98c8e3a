// Shared by the operations over the last dimension. One workgroup per vector of d values.

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLanes = 64;
layout(constant_id = 1) const bool kHasWeight = true;
layout(constant_id = 2) const bool kHasBias = false;
layout(set = 0, binding = 1, std430) readonly buffer X { float x_values[]; };
layout(set = 0, binding = 2, std430) readonly buffer Weight { float weight_values[]; };
layout(set = 0, binding = 3, std430) readonly buffer Bias { float bias_values[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Out { float out_values[]; };
// A row of the tensor holds per_row vectors.
layout(push_constant) uniform Push {
  uint d, per_row, count_at, fixed_rows, x_at, x_stride, weight_at, bias_at, out_at;
  float parameter;  // eps of the norms, the factor of sparsify
} push;
#include "reduce.glsl"

float sum_of(uint x_at, float mean, bool squares) {
  float sum = 0.0;
  for (uint i = gl_LocalInvocationID.x; i < push.d; i += kLanes) {
    const float x = x_values[x_at + i] - mean;
    sum = squares ? fma(x, x, sum) : sum + x;
  }
  return reduce_add(sum);
}
