#version 450
#extension GL_GOOGLE_include_directive : require
// Stores the keys and values of the step's tokens in their slots (defined by ggml-like/quant/cache_row.h). Each lane
// stores the values that share a word or a scale.

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint kFixedKeyType = 0;
layout(constant_id = 1) const uint kFixedValueType = 0;
#include "glsl/common.glsl"
#include "glsl/math.glsl"
#include "glsl/cache.glsl"
layout(set = 0, binding = 1, std430) readonly buffer K { float k_values[]; };
layout(set = 0, binding = 2, std430) readonly buffer V { float v_values[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Cache { uint cache_words[]; };
layout(push_constant) uniform Push {
  uint heads, key_dim, value_dim, k_at, k_stride, v_at, v_stride, cache_at;
  uint positions_at, sequences_at, table_at, table_stride;
  uint types;   // of keys; from bit 8, of values
  uint stride;  // of a latent cache, which has no values; else 0
} push;
uint key_type() { return kFixedKeyType == kAnyType ? push.types & 255u : kFixedKeyType; }
uint value_type() { return kFixedValueType == kAnyType ? push.types >> 8 : kFixedValueType; }

float value_of(bool key, uint at) { return key ? k_values[at] : v_values[at]; }

// The scale as stored: `largest` divided by a power of two or by 127.
float kept_scale(float largest, float by) {
  const float d = divide(largest, by);
  return half_to_float(float_to_half(d > 65504.0 ? 65504.0 : d < -65504.0 ? -65504.0 : d));
}
int code(float x, float inverse, float lowest, float highest) {
  precise float y = x * inverse;
  y = y > lowest ? y : lowest;  // NaN becomes the lowest
  return int(roundEven(y < highest ? y : highest));
}

// Word i is stored at `to` + stride * i.
void store(bool key, uint type, uint from, uint left, uint to, uint stride) {
  if (type == kF32) {
    cache_words[to] = floatBitsToUint(value_of(key, from));
    return;
  }
  if (type == kF16 || type == kBF16) {
    const float a = value_of(key, from), b = left > 1u ? value_of(key, from + 1u) : 0.0;
    const uint low = type == kF16 ? float_to_half(a) : float_to_bfloat(a);
    const uint high = type == kF16 ? float_to_half(b) : float_to_bfloat(b);
    cache_words[to] = low | high << 16;
    return;
  }
  float largest = 0.0;
  for (uint i = 0u; i < 32u; ++i) {
    const float x = value_of(key, from + i);
    if (abs(x) > abs(largest)) largest = type == kQ8_0 ? abs(x) : x;
  }
  const float scale = type == kQ8_0 ? kept_scale(largest, 127.0) : kept_scale(largest, -8.0);
  const float inverse = scale != 0.0 ? divide(1.0, scale) : 0.0;
  const uint words = type == kQ8_0 ? 8u : 4u;
  for (uint w = 0u; w < words; ++w) {
    uint packed = 0u;
    for (uint i = 0u; i < 4u; ++i) {
      const uint at = from + 4u * w + i;
      uint bits;
      if (type == kQ8_0) {
        bits = uint(code(value_of(key, at), inverse, -127.0, 127.0)) & 0xffu;
      } else {
        const int low = 8 + code(value_of(key, at), inverse, -8.0, 7.0);
        const int high = 8 + code(value_of(key, at + 16u), inverse, -8.0, 7.0);
        bits = uint(low | high << 4);
      }
      packed |= bits << (8u * i);
    }
    cache_words[to + stride * w] = packed;
  }
  cache_words[to + stride * words] = floatBitsToUint(scale);
}

// A key is a row of the cache, stored by the last of the positions that share an entry.
void store_latent(uint token, uint id, uint position, uint head, uint unit) {
  const uint entries = max(kBlockTokens / push.stride, 1u), row = row_words(key_type(), push.key_dim);
  if ((position + 1u) % push.stride != 0u) return;
  const uint slot = position / push.stride % entries, first = unit * unit_values(key_type());
  const uint to = push.cache_at + ((id * push.heads + head) * entries + slot) * row + unit * unit_words(key_type());
  store(true, key_type(), push.k_at + token * push.k_stride + head * push.key_dim + first, push.key_dim - first, to, 1u);
}

void main() {
  const uint token = gl_WorkGroupID.y;
  if (token >= n_tokens()) return;
  const uint key_units = (push.key_dim + unit_values(key_type()) - 1u) / unit_values(key_type());
  const uint value_units = (push.value_dim + unit_values(value_type()) - 1u) / unit_values(value_type());
  const uint units = push.stride != 0u ? key_units : key_units + value_units;
  const uint head = gl_GlobalInvocationID.x / units, unit = gl_GlobalInvocationID.x % units;
  if (head >= push.heads) return;
  const uint key_row = row_words(key_type(), push.key_dim), value_row = row_words(value_type(), push.value_dim);
  const uint position = uint(step_words[push.positions_at + token]);
  const uint sequence = uint(step_words[push.sequences_at + token]);
  const uint id = uint(step_words[push.table_at + sequence * push.table_stride + position / kBlockTokens]);
  if (push.stride != 0u) {
    store_latent(token, id, position, head, unit);
    return;
  }
  const uint block = push.cache_at + id * push.heads * kBlockTokens * (key_row + value_row);
  const uint slot = position % kBlockTokens;
  if (unit < key_units) {
    const uint first = unit * unit_values(key_type());
    const uint to = block + (head * key_row + unit * unit_words(key_type())) * kBlockTokens + slot;
    store(true, key_type(), push.k_at + token * push.k_stride + head * push.key_dim + first, push.key_dim - first, to,
          kBlockTokens);
  } else {
    const uint first = (unit - key_units) * unit_values(value_type());
    const uint to = block + push.heads * key_row * kBlockTokens + (head * kBlockTokens + slot) * value_row +
                    (unit - key_units) * unit_words(value_type());
    store(false, value_type(), push.v_at + token * push.v_stride + head * push.value_dim + first,
          push.value_dim - first, to, 1u);
  }
}
