#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef SUBGROUPS
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
#ifdef INT8
#extension GL_EXT_spirv_intrinsics : require
#endif
// GEMV and small-batch GEMM: a workgroup multiplies kRows rows of the weight by up to kTokens rows of x, each lane
// taking every kLanes-th group of 16 values. The order of the additions does not depend on the number of tokens. With
// experts there is one row of x per workgroup, whose expert comes from `ids`, if there are any. -DINT8: x is quantized.

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLanes = 32;
layout(constant_id = 1) const uint kRows = 2;
layout(constant_id = 2) const uint kTokens = 1;
#include "glsl/common.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Weight { uint weight_words[]; };
layout(set = 0, binding = 3, std430) readonly buffer Bias { float bias_values[]; };
layout(set = 0, binding = 4, std430) readonly buffer Ids { int ids[]; };
layout(set = 0, binding = 5, std430) writeonly buffer Out { float out_values[]; };
#include "glsl/matmul_push.glsl"
#define CODEBOOK_BINDING 6
#include "glsl/weights.glsl"
#ifdef INT8
#include "glsl/product_int8.glsl"
#else
#include "glsl/product_float.glsl"
#endif

const uint kSums = kRows * kTokens;
shared float lane_sums[kSums * kLanes];
// [kRows, kTokens] of this lane, after reduce_sums() of the workgroup.
float sums[kSums];

// What a workgroup computes. Rows of the weight are numbered across all experts.
struct Range {
  uint first_row, last_row;  // [first_row, last_row) of the weight, at most kRows
  uint first_x, n_x;         // kTokens rows of x from first_x on, of n_x in all
  uint out_shift;            // the first row of the expert, which is column 0 of the output
} range;

// False when there is nothing to compute.
bool find_range() {
  const uint rows_of_x = row_count(push.count_at, push.fixed_rows);
  range.first_x = (gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y) * kTokens;
  range.n_x = has_experts() ? rows_of_x * push.used : rows_of_x;
  range.first_row = push.row_begin + gl_WorkGroupID.x * kRows;
  range.last_row = push.row_end;
  range.out_shift = 0u;
  bool any = range.first_x < range.n_x;
  if (any && has_experts()) {
    const uint expert = has_ids() ? uint(ids[push.ids_at + range.first_x]) : range.first_x % push.used;
    range.out_shift = expert * push.n;
    range.first_row = range.out_shift + gl_WorkGroupID.x * kRows;
    range.last_row = min(range.out_shift + push.n, push.row_end);
    any = range.first_row + kRows > push.row_begin && range.first_row < range.last_row;
  }
  return any;
}

void add_products() {
  uint row_at[kRows], x_at[kTokens];
  for (uint r = 0u; r < kRows; ++r) {
    // A row outside the range is replaced by one inside, and not stored.
    const uint row = clamp(range.first_row + r, push.row_begin, range.last_row - 1u);
    row_at[r] = push.weight_skip + (row - push.row_begin) * push.row_bytes;
  }
  for (uint t = 0u; t < kTokens; ++t) {
    const uint row = min(range.first_x + t, range.n_x - 1u);
    x_at[t] = push.x_at + (has_experts() && push.x_per_expert == 0u ? row / push.used : row) * push.x_stride;
  }
  for (uint i = 0u; i < kSums; ++i) sums[i] = 0.0;
  const uint groups = (push.k + 15u) / 16u;
  for (uint group = gl_LocalInvocationID.x; group < groups; group += kLanes) {
    Weights weights[kRows];
    for (uint r = 0u; r < kRows; ++r) weights[r] = load_weights(row_at[r], group);
    for (uint t = 0u; t < kTokens; ++t) {
      const Activations x = load_activations(x_at[t], group);
      for (uint r = 0u; r < kRows; ++r) sums[r * kTokens + t] = add_product(weights[r], x, sums[r * kTokens + t]);
    }
  }
}

// Adds up the sums of all lanes, in every lane.
void reduce_sums() {
#ifdef SUBGROUPS
  for (uint i = 0u; i < kSums; ++i) sums[i] = subgroupAdd(sums[i]);
  if (gl_NumSubgroups > 1u) {
    if (subgroupElect()) {
      for (uint i = 0u; i < kSums; ++i) lane_sums[i * kLanes + gl_SubgroupID] = sums[i];
    }
    barrier();
    for (uint i = 0u; i < kSums; ++i) {
      float all = lane_sums[i * kLanes];
      for (uint s = 1u; s < gl_NumSubgroups; ++s) all += lane_sums[i * kLanes + s];
      sums[i] = all;
    }
  }
#else
  const uint lane = gl_LocalInvocationID.x;
  for (uint i = 0u; i < kSums; ++i) lane_sums[i * kLanes + lane] = sums[i];
  barrier();
  for (uint stride = kLanes / 2u; stride > 0u; stride >>= 1) {
    if (lane < stride) {
      for (uint i = 0u; i < kSums; ++i) lane_sums[i * kLanes + lane] += lane_sums[i * kLanes + lane + stride];
    }
    barrier();
  }
  for (uint i = 0u; i < kSums; ++i) sums[i] = lane_sums[i * kLanes];
#endif
}

void store_sums() {
  for (uint i = 0u; i < kSums; ++i) {
    const uint row = range.first_row + i / kTokens, t = range.first_x + i % kTokens;
    const bool exists = row >= push.row_begin && row < range.last_row && t < range.n_x;
    if (i % kLanes != gl_LocalInvocationID.x || !exists) continue;
    float y = sums[i];
    if (has_bias()) y += bias_values[push.bias_at + row];
    out_values[push.out_at + t * push.n + row - range.out_shift] = y;
  }
}

void main() {
  if (!find_range()) return;
  add_products();
  reduce_sums();
  store_sums();
}
