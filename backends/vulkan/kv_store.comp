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

float clamp_to_half(float x) { return x > 65504.0 ? 65504.0 : x < -65504.0 ? -65504.0 : x; }
// A scale or minimum as stored.
float kept(float x) { return half_to_float(float_to_half(clamp_to_half(x))); }
int code(float x, float inverse, float lowest, float highest) {
  precise float y = x * inverse;
  y = y > lowest ? y : lowest;  // NaN becomes the lowest
  return int(roundEven(y < highest ? y : highest));
}

// How the values of a unit become codes: from (value - low) * inverse.
struct Coding {
  float scale, minimum;  // as stored
  float inverse, low;
};

// The first value with the largest magnitude; 0 if there are only zeros and NaN.
float leader_of(bool key, uint from) {
  float largest = 0.0;
  for (uint i = 0u; i < 32u; ++i) {
    const float x = value_of(key, from + i);
    if (abs(x) > abs(largest)) largest = x;
  }
  return largest;
}

// Codes that are rounded to the stored scale.
Coding symmetric(float largest, float by) {
  const float scale = kept(divide(largest, by));
  return Coding(scale, 0.0, scale != 0.0 ? divide(1.0, scale) : 0.0, 0.0);
}

// The others are rounded to the scale before it is stored, unless that becomes 0.
float inverse_of(float d) { return kept(d) != 0.0 ? divide(1.0, d) : 0.0; }

Coding range_coding(bool key, uint from, float highest) {
  float low = infinity(), high = -infinity();
  for (uint i = 0u; i < 32u; ++i) {
    const float x = value_of(key, from + i);
    low = x < low ? x : low;
    high = x > high ? x : high;
  }
  if (!(low <= high)) return Coding(0.0, 0.0, 0.0, 0.0);  // nothing but NaN
  low = clamp_to_half(low);
  precise const float span = high - low;
  const float d = clamp_to_half(divide(span, highest));
  return Coding(kept(d), kept(low), inverse_of(d), low);
}

// The number of midpoints between neighbouring values of the codebook that x is not below.
uint nearest_iq4_nl(float x) {
  uint nearest = 0u;
  for (uint i = 0u; i < 15u; ++i) {
    precise const float below = x - iq4_nl_value(i), above = iq4_nl_value(i + 1u) - x;
    if (below >= above) ++nearest;
  }
  return nearest;
}

// The scale with the least weighted error for the codes that the largest magnitude leads to.
Coding iq4_nl_coding(bool key, uint from) {
  const float largest = leader_of(key, from), first = divide(largest, -127.0);
  if (abs(largest) < 1e-15) return Coding(0.0, 0.0, 0.0, 0.0);
  const float inverse = divide(1.0, first);
  precise float value_sum = 0.0, square_sum = 0.0;
  for (uint i = 0u; i < 32u; ++i) {
    precise const float x = value_of(key, from + i), scaled = inverse * x;
    const float value = iq4_nl_value(nearest_iq4_nl(scaled));
    precise const float weighted = x * x * value, by_value = weighted * x, by_square = weighted * value;
    value_sum += by_value;
    square_sum += by_square;
  }
  const float best = divide(value_sum, square_sum);
  return Coding(kept(isnan(best) || isinf(best) ? first : best), 0.0, inverse, 0.0);
}

Coding coding_of(bool key, uint type, uint from) {
  if (type == kQ8_0) return symmetric(abs(leader_of(key, from)), 127.0);
  if (type == kQ4_0) return symmetric(leader_of(key, from), -8.0);
  if (type == kIQ4_NL) return iq4_nl_coding(key, from);
  if (has_minimum(type)) return range_coding(key, from, type == kQ4_1 ? 15.0 : 31.0);
  const float d = clamp_to_half(divide(leader_of(key, from), -16.0));
  return Coding(kept(d), 0.0, inverse_of(d), 0.0);
}

// The code as its bits are stored.
uint code_of(uint type, Coding c, float x) {
  if (type == kQ8_0) return uint(code(x, c.inverse, -127.0, 127.0)) & 0xffu;
  if (type == kQ4_0) return uint(8 + code(x, c.inverse, -8.0, 7.0));
  precise const float y = (x - c.low) * c.inverse;
  if (type == kIQ4_NL) return nearest_iq4_nl(y);
  precise const float z = y + (type == kQ5_0 ? 16.5 : 0.5);
  const float highest = type == kQ4_1 ? 15.0 : 31.0;
  return z > 0.0 ? uint(z < highest ? z : highest) : 0u;  // NaN becomes 0
}

// Word i is stored at `to` + stride * i.
void store_unit(bool key, uint type, uint from, uint to, uint stride) {
  const Coding c = coding_of(key, type, from);
  uint fifth_bits = 0u;
  for (uint w = 0u; w < code_words(type); ++w) {
    uint packed = 0u;
    for (uint i = 0u; i < 4u; ++i) {
      const uint at = 4u * w + i;
      uint bits = code_of(type, c, value_of(key, from + at));
      if (type != kQ8_0) {
        const uint high = code_of(type, c, value_of(key, from + at + 16u));
        fifth_bits |= bits >> 4 << at | high >> 4 << (at + 16u);
        bits = bits & 15u | (high & 15u) << 4;
      }
      packed |= bits << (8u * i);
    }
    cache_words[to + stride * w] = packed;
  }
  const uint last = unit_words(type) - 1u;
  if (has_fifth_bits(type)) cache_words[to + stride * code_words(type)] = fifth_bits;
  if (has_minimum(type)) cache_words[to + stride * (last - 1u)] = floatBitsToUint(c.minimum);
  cache_words[to + stride * last] = floatBitsToUint(c.scale);
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
  store_unit(key, type, from, to, stride);
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
