// Shared by all shaders: the step's inputs at binding 0, and the number of rows of a tensor that hold data. Lengths,
// offsets and strides are in elements of 4 bytes.

// SignedZeroInfNanPreserve for 32 bits: without it, compilers may assume that there are no infinities and NaNs, on
// which attention masks, the order of logits and the detection of broken inputs rely. Removed at load time if the
// device lacks it.
#extension GL_EXT_spirv_intrinsics : require
spirv_execution_mode(extensions = ["SPV_KHR_float_controls"], capabilities = [4466], 4461, 32);

layout(set = 0, binding = 0, std430) readonly buffer Step { int step_words[]; };

const uint kFixedRows = 0xffffffffu;
// `count_at` is an index into the counts at the start of the step's inputs, or kFixedRows.
uint row_count(uint count_at, uint fixed_rows) {
  return count_at == kFixedRows ? fixed_rows : uint(step_words[count_at]);
}
uint n_tokens() { return uint(step_words[0]); }

float infinity() { return uintBitsToFloat(0x7f800000u); }
const float kNothingSeen = -1e30;  // as in ggml-like/op.h

// ---- fp16, in integer arithmetic where rounding or denormals matter, which Vulkan leaves to drivers ----

float half_to_float(uint h) {
  const uint magnitude = h & 0x7fffu;
  const float tiny = float(magnitude) * 5.9604644775390625e-8;  // 2^-24, below 2^-14
  const float normal = uintBitsToFloat((magnitude << 13) + ((magnitude >= 0x7c00u ? 224u : 112u) << 23));
  const float value = magnitude < 0x400u ? tiny : normal;
  return (h & 0x8000u) != 0 ? -value : value;
}
float low_half(uint word) { return half_to_float(word & 0xffffu); }
float high_half(uint word) { return half_to_float(word >> 16); }

// To nearest, ties to even.
uint float_to_half(float x) {
  const uint bits = floatBitsToUint(x), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u | (magnitude >> 13 & 0x3ffu);
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;
  if (magnitude < 0x38800000u) {
    // Multiples of 2^-24: the addition rounds.
    precise const float shifted = uintBitsToFloat(magnitude) + 0.5;
    return sign | (floatBitsToUint(shifted) - 0x3f000000u);
  }
  return sign | (magnitude + 0xfffu + (magnitude >> 13 & 1u) - (112u << 23)) >> 13;
}
uint float_to_bfloat(float x) {
  const uint bits = floatBitsToUint(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bits >> 16 | 0x40u;
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}
