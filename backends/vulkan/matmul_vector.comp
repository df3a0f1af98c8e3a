#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef SUBGROUPS
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
#ifdef INT8
#extension GL_EXT_spirv_intrinsics : require
#endif
// Products of few tokens: a workgroup multiplies kRows rows of the weight with up to kTokens rows of x, every lane taking
// each kLanes-th group of 16 values. The order of the additions does not depend on the number of tokens. With experts
// there is one x row per workgroup, whose expert is looked up in `ids`. -DINT8: of quantized activations.

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
#include "glsl/weights.glsl"
#ifdef INT8
#include "glsl/product_int8.glsl"
#else
#include "glsl/product_float.glsl"
#endif

const uint kSums = kRows * kTokens;
shared float lane_sums[kSums * kLanes];

void main() {
  const uint lane = gl_LocalInvocationID.x;
  const uint rows_of_x = row_count(push.count_at, push.fixed_rows);
  uint first_x = gl_WorkGroupID.y * kTokens, n_x = rows_of_x, first_row = push.row_begin + gl_WorkGroupID.x * kRows;
  uint last_row = push.row_end, out_shift = 0u;
  if (has_experts()) {
    n_x = rows_of_x * push.used;
    if (first_x >= n_x) return;
    const uint expert_row = uint(ids[push.ids_at + first_x]) * push.n;  // of the whole weight
    first_row = expert_row + gl_WorkGroupID.x * kRows;
    last_row = min(expert_row + push.n, push.row_end);
    out_shift = expert_row;
    if (first_row + kRows <= push.row_begin || first_row >= last_row) return;
  } else if (first_x >= n_x) {
    return;
  }

  uint row_at[kRows], x_at[kTokens];
  for (uint r = 0u; r < kRows; ++r) {
    const uint row = clamp(first_row + r, push.row_begin, last_row - 1u);  // repeated, and not stored
    row_at[r] = push.weight_skip + (row - push.row_begin) * push.row_bytes;
  }
  for (uint t = 0u; t < kTokens; ++t) {
    const uint row = min(first_x + t, n_x - 1u);
    x_at[t] = push.x_at + (has_experts() && push.x_per_expert == 0u ? row / push.used : row) * push.x_stride;
  }

  float sums[kSums];
  for (uint i = 0u; i < kSums; ++i) sums[i] = 0.0;
  const uint groups = (push.k + 15u) / 16u;
  for (uint group = lane; group < groups; group += kLanes) {
    Weights weights[kRows];
    for (uint r = 0u; r < kRows; ++r) weights[r] = load_weights(row_at[r], group);
    for (uint t = 0u; t < kTokens; ++t) {
      const Activations x = load_activations(x_at[t], group);
      for (uint r = 0u; r < kRows; ++r) sums[r * kTokens + t] = add_product(weights[r], x, sums[r * kTokens + t]);
    }
  }

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

  for (uint i = 0u; i < kSums; ++i) {
    const uint row = first_row + i / kTokens, t = first_x + i % kTokens;
    if (i % kLanes != lane || row < push.row_begin || row >= last_row || t >= n_x) continue;
    float y = sums[i];
    if (has_bias()) y += bias_values[push.bias_at + row];
    out_values[push.out_at + t * push.n + row - out_shift] = y;
  }
}
