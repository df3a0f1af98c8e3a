// out[row][i] = f(x[row][i]). The including file defines f.

layout(local_size_x = 64) in;
layout(set = 0, binding = 1, std430) readonly buffer X { float x_values[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Out { float out_values[]; };

void main() {
  const uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
  if (i >= push.n || row >= row_count(push.count_at, push.fixed_rows)) return;
  out_values[push.out_at + row * push.n + i] = f(x_values[push.x_at + row * push.x_stride + i]);
}
