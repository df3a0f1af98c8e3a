#version 450
// Reads a buffer once, 16 bytes per lane and iteration, to measure the read bandwidth of the device. The sum keeps the
// compiler from removing the reads.

layout(local_size_x = 256) in;
layout(set = 0, binding = 0, std430) readonly buffer Data { uvec4 data[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Out { uint sums[]; };
layout(push_constant) uniform Push { uint vectors; } push;

void main() {
  const uint stride = gl_NumWorkGroups.x * 256u;
  uvec4 sum = uvec4(0u);
  for (uint i = gl_GlobalInvocationID.x; i < push.vectors; i += stride) sum += data[i];
  if (sum.x + sum.y + sum.z + sum.w == 0x9e3779b9u) sums[0] = 1u;
}
