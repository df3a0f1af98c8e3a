#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Products of many tokens: a workgroup of 128 multiplies 64 rows of the weight with 64 rows of x. In steps of 32 values
// both are unpacked into shared memory; every lane keeps 8 x 4 sums. With experts the rows of x come from a list that
// moe_group has made: tiles of up to 64 (token, rank) pairs that chose the same expert.

layout(local_size_x = 128) in;
#include "glsl/common.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Weight { uint weight_words[]; };
layout(set = 0, binding = 2, std430) readonly buffer X { float x_values[]; };
layout(set = 0, binding = 2, std430) readonly buffer X4 { vec4 x_vectors[]; };
layout(set = 0, binding = 3, std430) readonly buffer Bias { float bias_values[]; };
layout(set = 0, binding = 4, std430) readonly buffer Tiles { int tiles[]; };
layout(set = 0, binding = 5, std430) writeonly buffer Out { float out_values[]; };
#include "glsl/matmul_push.glsl"
#include "glsl/weights.glsl"

const uint kTile = 64u, kStep = 32u, kRow = kTile + 4u;  // padded: lanes write columns
shared float w_tile[kStep * kRow];  // [value][row]
shared float x_tile[kStep * kRow];  // [value][row of x]
shared uint x_rows[kTile];          // which rows of the output; kFixedRows where there is none

void main() {
  const uint lane = gl_LocalInvocationID.x;
  const uint rows_of_x = row_count(push.count_at, push.fixed_rows);
  uint first_row = push.row_begin + gl_WorkGroupID.x * kTile, last_row = push.row_end, out_shift = 0u;
  if (has_experts()) {
    if (gl_WorkGroupID.y >= uint(tiles[push.tiles_at])) return;
    // Of a tile: its expert, its first pair in the list, how many; behind all tiles the list.
    const uint tile = push.tiles_at + 1u + 3u * gl_WorkGroupID.y;
    const uint expert_row = uint(tiles[tile]) * push.n;
    first_row = expert_row + gl_WorkGroupID.x * kTile;
    last_row = min(expert_row + push.n, push.row_end);
    out_shift = expert_row;
    if (first_row + kTile <= push.row_begin || first_row >= last_row) return;
    if (lane < kTile) x_rows[lane] = lane < uint(tiles[tile + 2u]) ? uint(tiles[uint(tiles[tile + 1u]) + lane]) : kFixedRows;
  } else {
    if (gl_WorkGroupID.y * kTile >= rows_of_x) return;
    const uint row = gl_WorkGroupID.y * kTile + lane;
    if (lane < kTile) x_rows[lane] = row < rows_of_x ? row : kFixedRows;
  }
  barrier();

  // Loading: a lane takes one group of 16 values of one row of each side.
  const uint load_row = lane >> 1, load_half = lane & 1u;
  const uint row = clamp(first_row + load_row, push.row_begin, last_row - 1u);
  const uint row_at = push.weight_skip + (row - push.row_begin) * push.row_bytes;
  const uint x_row = x_rows[load_row];
  const uint x_at = push.x_at + (has_experts() && push.x_per_expert == 0u ? x_row / push.used : x_row) * push.x_stride;
  // Multiplying: 8 rows of the weight with 4 of x.
  const uint w_first = 8u * (lane & 7u), x_first = 4u * (lane >> 3);
  const bool idle = x_rows[x_first] == kFixedRows;

  float sums[32];
  for (uint i = 0u; i < 32u; ++i) sums[i] = 0.0;
  const uint groups = (push.k + 15u) / 16u;
  for (uint start = 0u; start < groups; start += 2u) {
    const uint group = start + load_half, to = 16u * load_half;
    if (group < groups) {
      const Group g = load_group(row_at, group, push.k);
      for (uint i = 0u; i < 16u; ++i) {
        w_tile[(to + i) * kRow + load_row] = fma(g.scale, g.code[i / 4u][i % 4u], g.offset);
      }
    } else {
      for (uint i = 0u; i < 16u; ++i) w_tile[(to + i) * kRow + load_row] = 0.0;
    }
    for (uint j = 0u; j < 4u; ++j) {
      vec4 x = vec4(0.0);
      const uint at = 16u * group + 4u * j;
      if (x_row != kFixedRows && group < groups) {
        if (is_aligned()) {
          x = x_vectors[(x_at + at) / 4u];
        } else {
          for (uint i = 0u; i < 4u; ++i) x[i] = at + i < push.k ? x_values[x_at + at + i] : 0.0;
        }
      }
      for (uint i = 0u; i < 4u; ++i) x_tile[(to + 4u * j + i) * kRow + load_row] = x[i];
    }
    barrier();
    [[dont_unroll]] for (uint v = 0u; v < kStep && !idle; ++v) {
      float w[8], x[4];
      for (uint i = 0u; i < 8u; ++i) w[i] = w_tile[v * kRow + w_first + i];
      for (uint i = 0u; i < 4u; ++i) x[i] = x_tile[v * kRow + x_first + i];
      for (uint i = 0u; i < 8u; ++i) {
        for (uint j = 0u; j < 4u; ++j) sums[4u * i + j] = fma(w[i], x[j], sums[4u * i + j]);
      }
    }
    barrier();
  }

  for (uint j = 0u; j < 4u; ++j) {
    const uint out_row = x_rows[x_first + j];
    if (out_row == kFixedRows) continue;
    for (uint i = 0u; i < 8u; ++i) {
      const uint r = first_row + w_first + i;
      if (r < push.row_begin || r >= last_row) continue;
      float y = sums[4u * i + j];
      if (has_bias()) y += bias_values[push.bias_at + r];
      out_values[push.out_at + out_row * push.n + r - out_shift] = y;
    }
  }
}
