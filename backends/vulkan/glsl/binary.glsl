// out[row][i] = f(a[row][i], the matching element of b). The including file defines f, which may use `push`.

layout(local_size_x = 64) in;
layout(set = 0, binding = 1, std430) readonly buffer A { float a_values[]; };
layout(set = 0, binding = 2, std430) readonly buffer B { float b_values[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Out { float out_values[]; };
// Element i of a row is combined with the element of b at b_at + row * b_stride + i / b_repeat % b_period.
layout(push_constant) uniform Push {
  uint n, count_at, fixed_rows, a_at, a_stride, b_at, b_stride, b_repeat, b_period, out_at;
  float gate_limit, activation_limit, up_limit, up_offset;  // of gated_activation
} push;
float f(float a, float b);

void main() {
  const uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
  if (i >= push.n || row >= row_count(push.count_at, push.fixed_rows)) return;
  const float a = a_values[push.a_at + row * push.a_stride + i];
  const float b = b_values[push.b_at + row * push.b_stride + i / push.b_repeat % push.b_period];
  out_values[push.out_at + row * push.n + i] = f(a, b);
}
