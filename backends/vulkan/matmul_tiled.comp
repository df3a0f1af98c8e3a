#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// GEMM with many tokens: a workgroup of 128 lanes multiplies 64 rows of the weight by 64 rows of x. Both are unpacked
// to shared memory in steps of 32 values; each lane keeps 8 x 4 sums.

layout(local_size_x = 128) in;
#include "glsl/common.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Weight { uint weight_words[]; };
layout(set = 0, binding = 2, std430) readonly buffer X { float x_values[]; };
layout(set = 0, binding = 2, std430) readonly buffer X4 { vec4 x_vectors[]; };
#include "glsl/matmul_push.glsl"
#include "glsl/tile.glsl"
#define CODEBOOK_BINDING 6
#include "glsl/weights.glsl"

const uint kStep = 32u, kRow = kTile + 4u;  // padded, because lanes write columns
shared float w_tile[kStep * kRow];  // [value][row]
shared float x_tile[kStep * kRow];  // [value][row of x]

void main() {
  const uint lane = gl_LocalInvocationID.x;
  const Tile tile = find_tile(lane);
  if (tile.empty) return;
  barrier();

  // Loading: each lane takes a group of 16 values of one row of each operand.
  const uint load_row = lane >> 1, load_half = lane & 1u;
  const uint row_at = weight_at(tile, tile.first_row + load_row), x_row = x_rows[load_row];
  const uint x_at = push.x_at + x_row_of(x_row) * push.x_stride;
  // Multiplying: 8 rows of the weight by 4 of x.
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
    for (uint i = 0u; i < 8u; ++i) store(tile, tile.first_row + w_first + i, out_row, sums[4u * i + j]);
  }
}
