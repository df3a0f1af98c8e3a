#version 450
#extension GL_GOOGLE_include_directive : require
// Merges the partial results of attention for one query head, in the order of the workgroups; sinks come last.

layout(local_size_x = 128) in;
#include "glsl/common.glsl"
#include "glsl/math.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Parts { float parts[]; };  // [T, heads, kChunks, value_dim + 2]
layout(set = 0, binding = 2, std430) readonly buffer Sinks { float sinks[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Out { float out_values[]; };
layout(set = 0, binding = 4, std430) writeonly buffer LogSums { float log_sums[]; };
// flags: bit 0: sinks, bit 1: the log-sum-exp is a result too, and a token may see nothing
layout(push_constant) uniform Push { uint heads, parts_at, sinks_at, out_at, value_dim, log_sums_at, flags; } push;
bool has_sinks() { return (push.flags & 1u) != 0u; }
bool has_log_sums() { return (push.flags & 2u) != 0u; }

const uint kChunks = 16u;

void main() {
  const uint head = gl_WorkGroupID.x, token = gl_WorkGroupID.y;
  if (token >= n_tokens()) return;
  const uint row = token * push.heads + head, size = push.value_dim + 2u, from = push.parts_at + row * kChunks * size;
  float seen = -infinity();
  for (uint c = 0u; c < kChunks; ++c) seen = max(seen, parts[from + c * size]);
  const float best = has_sinks() ? max(sinks[push.sinks_at + head], seen) : seen;
  float total = 0.0, factors[kChunks];
  for (uint c = 0u; c < kChunks; ++c) {
    const float most = parts[from + c * size];
    factors[c] = most == -infinity() ? 0.0 : exp_of(most - best);
    if (factors[c] != 0.0) total = fma(parts[from + c * size + 1u], factors[c], total);
  }
  if (has_sinks()) total += exp_of(sinks[push.sinks_at + head] - best);
  const bool nothing = has_log_sums() && seen == -infinity();
  if (has_log_sums() && gl_LocalInvocationID.x == 0u) {
    log_sums[push.log_sums_at + row] = nothing ? kNothingSeen : best + log_of(total);
  }
  for (uint dim = gl_LocalInvocationID.x; dim < push.value_dim; dim += 128u) {
    float sum = 0.0;
    for (uint c = 0u; c < kChunks; ++c) {
      if (factors[c] != 0.0) sum = fma(parts[from + c * size + 2u + dim], factors[c], sum);
    }
    out_values[push.out_at + row * push.value_dim + dim] = nothing ? 0.0 : divide(sum, total);
  }
}
