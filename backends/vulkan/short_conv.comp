#version 450
#extension GL_GOOGLE_include_directive : require
// A causal convolution of each channel. The workgroup of a sequence's first row computes all rows that need the state,
// and writes the state; the other rows have a workgroup each.

layout(local_size_x = 64) in;
layout(constant_id = 0) const bool kHasBias = false;
layout(constant_id = 1) const bool kSilu = false;
#include "glsl/common.glsl"
#include "glsl/math.glsl"
#include "glsl/runs.glsl"
layout(set = 0, binding = 1, std430) readonly buffer X { float x_values[]; };            // [T, channels]
layout(set = 0, binding = 2, std430) readonly buffer Weight { float weight_values[]; };  // [channels, width]
layout(set = 0, binding = 3, std430) readonly buffer Bias { float bias_values[]; };      // [channels]
layout(set = 0, binding = 4, std430) writeonly buffer Out { float out_values[]; };       // [T, channels]
layout(set = 0, binding = 5, std430) buffer Slots { float slots[]; };                    // [slots, .., before, channels]
layout(push_constant) uniform Push {
  States states;
  uint channels, width, dilation, x_at, x_stride, weight_at, bias_at, out_at;
} push;

uint rows_before() { return (push.width - 1u) * push.dilation; }

// The row `back` rows before row `end` of the step; rows of earlier steps are in the state.
float value_at(Run run, uint end, uint back, uint channel) {
  if (back <= end - run.first) return x_values[push.x_at + (end - back) * push.x_stride + channel];
  const uint kept = rows_before() + (end - run.first) - back;
  return run.empty ? 0.0 : slots[run.state + kept * push.channels + channel];
}

void convolve(Run run, uint row, uint channel) {
  precise float sum = 0.0;
  for (uint j = 0u; j < push.width; ++j) {
    const float x = value_at(run, row, (push.width - 1u - j) * push.dilation, channel);
    sum = fma(x, weight_values[push.weight_at + channel * push.width + j], sum);
  }
  if (kHasBias) sum += bias_values[push.bias_at + channel];
  out_values[push.out_at + row * push.channels + channel] = kSilu ? divide(sum, 1.0 + exp_of(-sum)) : sum;
}

void main() {
  const uint channel = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y, before = rows_before();
  if (row >= n_tokens()) return;
  const uint sequence = uint(step_words[push.states.sequences_at + row]);
  if (row >= before && is_of(push.states, row - before, sequence)) {
    const Run all = {row - before, row + 1u, 0u, false};
    if (channel < push.channels) convolve(all, row, channel);
    return;
  }
  if (row > 0u && is_of(push.states, row - 1u, sequence)) return;
  const Run run = find_run(push.states, sequence, 64u);
  if (channel >= push.channels) return;
  for (uint t = run.first; t < min(run.end, run.first + before); ++t) convolve(run, t, channel);
  // Ascending: each row is read before it is overwritten.
  for (uint j = 0u; j < before; ++j) {
    slots[run.state + j * push.channels + channel] = value_at(run, run.end, before - j, channel);
  }
}
