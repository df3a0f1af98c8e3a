// For matmul_vector: the product of 16 weights and 16 F32 activations.
layout(set = 0, binding = 2, std430) readonly buffer X { float x_values[]; };
layout(set = 0, binding = 2, std430) readonly buffer X4 { vec4 x_vectors[]; };
#define Weights Group
#define load_weights(row_at, group) load_group(row_at, group, push.k)

struct Activations {
  vec4 value[4];
  float sum;
};

Activations load_activations(uint row_at, uint group) {
  const uint at = row_at + 16u * group;
  Activations x;
  x.sum = 0.0;
  if (is_aligned()) {
    for (uint j = 0u; j < 4u; ++j) x.value[j] = x_vectors[at / 4u + j];
  } else {
    for (uint j = 0u; j < 4u; ++j) {
#ifdef HAS_TAIL
      for (uint i = 0u; i < 4u; ++i) {
        x.value[j][i] = 16u * group + 4u * j + i < push.k ? x_values[at + 4u * j + i] : 0.0;
      }
#else
      x.value[j] = vec4(x_values[at + 4u * j], x_values[at + 4u * j + 1u], x_values[at + 4u * j + 2u],
                        x_values[at + 4u * j + 3u]);
#endif
    }
  }
#ifdef HAS_OFFSET
  precise const vec4 four = (x.value[0] + x.value[1]) + (x.value[2] + x.value[3]);
  precise const float all = (four.x + four.y) + (four.z + four.w);
  x.sum = all;
#endif
  return x;
}

float add_product(Weights w, Activations x, float sum) {
  precise vec4 products = w.code[0] * x.value[0];
  products = fma(w.code[1], x.value[1], products);
  products = fma(w.code[2], x.value[2], products);
  products = fma(w.code[3], x.value[3], products);
  precise const float product = (products.x + products.y) + (products.z + products.w);
  precise float result = fma(w.scale, product, sum);
#ifdef HAS_OFFSET
  result = fma(w.offset, x.sum, result);
#endif
  return result;
}
