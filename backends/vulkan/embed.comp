#version 450
#extension GL_GOOGLE_include_directive : require
// Writes the dequantized row of the table for each token's id or position. The table may be bound in ranges of rows;
// tokens whose row is in another range are skipped.

layout(local_size_x = 64) in;
#include "glsl/common.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Table { uint weight_words[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Out { float out_values[]; };
layout(push_constant) uniform Push {
  uint d, rows_at, row_begin, row_end, row_bytes, table_skip, out_at;
} push;
#define CODEBOOK_BINDING 3
#include "glsl/weights.glsl"

void main() {
  const uint token = gl_WorkGroupID.y, group = gl_GlobalInvocationID.x;
  if (token >= n_tokens() || 16u * group >= push.d) return;
  const uint row = uint(step_words[push.rows_at + token]);
  if (row < push.row_begin || row >= push.row_end) return;
  const Group g = load_group(push.table_skip + (row - push.row_begin) * push.row_bytes, group, push.d);
  const uint left = min(16u, push.d - 16u * group), to = push.out_at + token * push.d + 16u * group;
  for (uint i = 0u; i < left; ++i) {
    // The product is exact, so adding the offset rounds only once.
    precise const float x = fma(g.scale, g.code[i / 4u][i % 4u], g.offset);
    out_values[to + i] = x;
  }
}
