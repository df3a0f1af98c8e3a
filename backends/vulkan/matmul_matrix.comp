#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifndef EMULATED
#extension GL_NV_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
// As matmul_tiled, with cooperative matrices: a workgroup of four subgroups of 32 lanes multiplies 64 rows of the
// weight by 64 rows of x, each subgroup 32 by 32. Both are fp16 in shared memory; sums are F32. Rows of x come from
// to_half.comp, each scaled by a power of two that is divided out at the end.

layout(local_size_x = 128) in;
#include "glsl/common.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Weight { uint weight_words[]; };
layout(set = 0, binding = 2, std430) readonly buffer X { uvec4 x_halves[]; };
layout(set = 0, binding = 2, std430) readonly buffer Factors { float x_factors[]; };
#include "glsl/matmul_push.glsl"
#include "glsl/tile.glsl"
#define CODEBOOK_BINDING 6
#include "glsl/weights.glsl"

const uint kRow = 5u;               // 32 fp16 values in words of 16 bytes, padded to avoid bank conflicts
const uint kOutRow = kTile + 4u;
shared uvec4 w_tile[kTile * kRow];  // [row][32 values]
shared uvec4 x_tile[kTile * kRow];  // [row of x][32 values]
shared float out_tile[kTile * kOutRow];  // [row of x][row]

// Weights that may exceed the range of fp16 are zero in the tile of their step. If there are any (real models have
// none), a tile of only those follows, times 2^-14: with fp16 scales and codes of 8 bits no weight exceeds 2^29.
const float kLargest = 65504.0, kLargeFactor = 0.00006103515625;
shared uint any_large;
bool is_large(Group g) { return fma(abs(g.scale), 128.0, abs(g.offset)) > kLargest; }

#ifdef EMULATED
#include "glsl/matrices_emulated.glsl"
#else
#include "glsl/matrices_nv.glsl"
#endif

uvec4 eight_halves(vec4 a, vec4 b) {
  return uvec4(packHalf2x16(a.xy), packHalf2x16(a.zw), packHalf2x16(b.xy), packHalf2x16(b.zw));
}
void put_weights(uint to, Group g, float factor) {
  const vec4 scale = vec4(g.scale * factor), offset = vec4(g.offset * factor);
  w_tile[to] = eight_halves(fma(scale, g.code[0], offset), fma(scale, g.code[1], offset));
  w_tile[to + 1u] = eight_halves(fma(scale, g.code[2], offset), fma(scale, g.code[3], offset));
}
void put_no_weights(uint to) { w_tile[to] = w_tile[to + 1u] = uvec4(0u); }

void main() {
  const uint lane = gl_LocalInvocationID.x;
  const Tile tile = find_tile(lane);
  if (tile.empty) return;
  if (lane == 0u) any_large = 0u;
  barrier();

  // Loading: each lane takes a group of 16 values of one row of each operand.
  const uint load_row = lane >> 1, load_half = lane & 1u, load_to = load_row * kRow + 2u * load_half;
  const uint row_at = weight_at(tile, tile.first_row + load_row), x_row = x_rows[load_row];
  const uint x_at = (push.x_at + x_row_of(x_row) * push.x_stride) / 4u;
  // Multiplying: the rows of the tiles.
  const uint w_first = 32u * (subgroup_index() & 1u), x_first = 32u * (subgroup_index() >> 1);

  Sums sums[4];  // [16 rows][16 rows of x]
  [[unroll]] for (uint i = 0u; i < 4u; ++i) sums[i] = no_sums();
  const uint groups = push.k / 16u;
  for (uint start = 0u; start < groups; start += 2u) {
    const uint group = start + load_half;
    const Group g = load_group(row_at, group, push.k);
    if (is_large(g)) {
      put_no_weights(load_to);
      atomicOr(any_large, 1u);
    } else {
      put_weights(load_to, g, 1.0);
    }
    const bool present = x_row != kFixedRows;
    x_tile[load_to] = present ? x_halves[x_at + 2u * group] : uvec4(0u);
    x_tile[load_to + 1u] = present ? x_halves[x_at + 2u * group + 1u] : uvec4(0u);
    barrier();
    [[unroll]] for (uint v = 0u; v < 2u; ++v) multiply_add(sums, w_first * kRow + 2u * v, x_first * kRow + 2u * v);
    const bool large = any_large != 0u;  // the same in all lanes
    barrier();
    if (!large) continue;
    const Group again = load_group(row_at, group, push.k);
    if (is_large(again)) put_weights(load_to, again, kLargeFactor);
    else put_no_weights(load_to);
    if (lane == 0u) any_large = 0u;
    [[unroll]] for (uint i = 0u; i < 4u; ++i) sums[i] = scaled_sums(sums[i], kLargeFactor);
    barrier();
    [[unroll]] for (uint v = 0u; v < 2u; ++v) multiply_add(sums, w_first * kRow + 2u * v, x_first * kRow + 2u * v);
    [[unroll]] for (uint i = 0u; i < 4u; ++i) sums[i] = scaled_sums(sums[i], 1.0 / kLargeFactor);
    barrier();
  }

  [[unroll]] for (uint i = 0u; i < 2u; ++i) {
    [[unroll]] for (uint j = 0u; j < 2u; ++j) {
      put_sums(sums[2u * i + j], (x_first + 16u * j) * kOutRow + w_first + 16u * i);
    }
  }
  barrier();
  for (uint i = lane; i < kTile * kTile; i += 128u) {
    const uint row = i % kTile, out_row = x_rows[i / kTile];
    if (out_row == kFixedRows) continue;
    const float factor = x_factors[push.x_at + x_row_of(out_row) * push.x_stride + push.k / 2u];
    store(tile, tile.first_row + row, out_row, out_tile[i / kTile * kOutRow + row] * factor);
  }
}
