// For matmul_vector: the product of 16 codes of a quantized weight and 16 activations quantized by quantize.comp. A row
// of activations is k / 4 words of codes, then d and d * (the sum of the codes) for each 16. The sum of products is
// exact.
layout(set = 0, binding = 2, std430) readonly buffer X { uvec4 x_codes[]; };
layout(set = 0, binding = 2, std430) readonly buffer Scales { vec2 x_scales[]; };
#define Weights Codes
#define load_weights(row_at, group) load_codes(row_at, group)

// OpSDot with PackedVectorFormat4x8Bit; glslc 2023.2 has no name for it. The capabilities are DotProduct and
// DotProductInput4x8BitPacked.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018], id = 4450)
int packed_dot(uint a, uint b, spirv_literal int format);

struct Activations {
  uvec4 word;
  vec2 scale;
};

Activations load_activations(uint row_at, uint group) {
  Activations x;
  x.word = x_codes[row_at / 4u + group];
  x.scale = x_scales[(row_at + push.k / 4u) / 2u + group];
  return x;
}

float add_product(Weights w, Activations x, float sum) {
  const int product = packed_dot(w.word[0], x.word.x, 0) + packed_dot(w.word[1], x.word.y, 0) +
                      packed_dot(w.word[2], x.word.z, 0) + packed_dot(w.word[3], x.word.w, 0);
#ifdef TYPE_MXFP4
  precise const float scaled = float(product) * w.unit * w.scale;
#else
  precise const float scaled = float(product) * w.scale;
#endif
  precise float result = fma(scaled, x.scale.x, sum);
#ifdef HAS_OFFSET
  result = fma(w.offset, x.scale.y, result);
#endif
  return result;
}
