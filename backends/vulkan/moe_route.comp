#version 450
#extension GL_GOOGLE_include_directive : require
// Selects the experts of a token and their weights; one workgroup per token. Among equal scores the lower expert comes
// first; NaN counts as the smallest score. Where the token's id selects the experts, only their weights are computed.

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint kGating = 0;  // Gating of ggml-like/op.h, by number
layout(constant_id = 1) const bool kHasBias = false;
layout(constant_id = 2) const bool kNormalize = false;
layout(constant_id = 3) const uint kMostExperts = 1024;  // the capacity
layout(constant_id = 4) const bool kById = false;
#include "glsl/common.glsl"
#include "glsl/math.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Logits { float logits[]; };
layout(set = 0, binding = 2, std430) readonly buffer Bias { float bias_values[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Ids { int ids[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Weights { float weights[]; };
layout(set = 0, binding = 5, std430) readonly buffer Experts { int experts_of[]; };  // [token ids, used]
layout(push_constant) uniform Push {
  uint experts, used, groups, groups_used, count_at, fixed_rows, logits_at, logits_stride, bias_at, ids_at, weights_at;
  uint experts_at, tokens_at;  // with kById: rows are tokens
  float scale;
} push;

const uint kLanes = 64u;
const float kLeastWeightSum = 6.103515625e-5;
shared float probability[kMostExperts];
shared float score[kMostExperts];
shared bool taken[kMostExperts];
shared float group_score[kMostExperts];
shared float best_value[kLanes];
shared uint best_index[kLanes];
shared float chosen_weight[kMostExperts];

// The index of the largest score that is not taken, the first among equals; the same in all lanes.
uint best_left() {
  const uint lane = gl_LocalInvocationID.x;
  float value = -infinity();
  uint index = kFixedRows;
  for (uint e = lane; e < push.experts; e += kLanes) {
    if (taken[e]) continue;
    const float s = isnan(score[e]) ? -infinity() : score[e];
    if (index == kFixedRows || s > value) {
      value = s;
      index = e;
    }
  }
  best_value[lane] = value;
  best_index[lane] = index;
  barrier();
  for (uint stride = kLanes / 2u; stride > 0u; stride >>= 1) {
    if (lane < stride) {
      const float v = best_value[lane + stride];
      const uint i = best_index[lane + stride];
      if (i != kFixedRows && (best_index[lane] == kFixedRows || v > best_value[lane] ||
                              (v == best_value[lane] && i < best_index[lane]))) {
        best_value[lane] = v;
        best_index[lane] = i;
      }
    }
    barrier();
  }
  return best_index[0];
}

// The expert at place u of a row.
uint expert_at(uint row, uint u) {
  if (!kById) return best_left();
  return uint(experts_of[push.experts_at + uint(step_words[push.tokens_at + row]) * push.used + u]);
}

// Gives the experts outside the best groups the lowest score.
void keep_best_groups() {
  const uint lane = gl_LocalInvocationID.x, size = push.experts / push.groups;
  for (uint g = lane; g < push.groups; g += kLanes) {
    float first = -infinity(), second = -infinity();
    for (uint e = g * size; e < (g + 1u) * size; ++e) {
      const float s = score[e];
      if (s > first) {
        second = first;
        first = s;
      } else if (s > second) {
        second = s;
      }
    }
    group_score[g] = size > 1u ? first + second : first;
  }
  barrier();
  for (uint g = lane; g < push.groups; g += kLanes) {
    uint better = 0u;
    for (uint other = 0u; other < push.groups; ++other) {
      const bool wins = group_score[other] > group_score[g] || (group_score[other] == group_score[g] && other < g);
      better += wins ? 1u : 0u;
    }
    if (better < push.groups_used) continue;
    for (uint e = g * size; e < (g + 1u) * size; ++e) score[e] = -infinity();
  }
  barrier();
}

void main() {
  const uint row = gl_WorkGroupID.x, lane = gl_LocalInvocationID.x;
  if (row >= row_count(push.count_at, push.fixed_rows)) return;
  const uint logits_at = push.logits_at + row * push.logits_stride;
  float largest = -infinity();
  for (uint e = 0u; e < push.experts; ++e) largest = max(largest, logits[logits_at + e]);
  for (uint e = lane; e < push.experts; e += kLanes) {
    const float x = logits[logits_at + e];
    float p = x;
    if (kGating == 0u) p = exp_of(x - largest);
    if (kGating == 1u) p = sigmoid_of(x);
    if (kGating == 4u) p = sqrt(softplus_of(x));
    probability[e] = p;
    taken[e] = false;
  }
  barrier();
  if (kGating == 0u) {
    float sum = 0.0;
    for (uint e = 0u; e < push.experts; ++e) sum += probability[e];
    barrier();
    for (uint e = lane; e < push.experts; e += kLanes) probability[e] = divide(probability[e], sum);
    barrier();
  }
  for (uint e = lane; e < push.experts; e += kLanes) {
    score[e] = kHasBias ? probability[e] + bias_values[push.bias_at + e] : probability[e];
  }
  barrier();
  if (push.groups > 1u && push.groups_used < push.groups) keep_best_groups();
  for (uint u = 0u; u < push.used; ++u) {
    const uint e = expert_at(row, u);
    if (lane == 0u) {
      taken[e] = true;
      chosen_weight[u] = probability[e];
      ids[push.ids_at + row * push.used + u] = int(e);
    }
    barrier();
  }
  if (lane != 0u) return;
  if (kGating == 2u) {
    float most = chosen_weight[0], sum = 0.0;
    for (uint u = 1u; u < push.used; ++u) most = max(most, chosen_weight[u]);
    for (uint u = 0u; u < push.used; ++u) {
      chosen_weight[u] = exp_of(chosen_weight[u] - most);
      sum += chosen_weight[u];
    }
    for (uint u = 0u; u < push.used; ++u) chosen_weight[u] = divide(chosen_weight[u], sum);
  }
  if (kGating == 3u) {
    for (uint u = 0u; u < push.used; ++u) chosen_weight[u] = sigmoid_of(chosen_weight[u]);
  }
  float sum = 1.0;
  if (kNormalize) {
    sum = 0.0;
    for (uint u = 0u; u < push.used; ++u) sum += chosen_weight[u];
    if (sum < kLeastWeightSum) sum = kLeastWeightSum;
  }
  for (uint u = 0u; u < push.used; ++u) {
    weights[push.weights_at + row * push.used + u] = divide(chosen_weight[u], sum) * push.scale;
  }
}
