// For matmul_matrix: the functions of matrices_nv.glsl in plain code, for tests on devices without cooperative
// matrices. 32 lanes share a matrix: lane l has row l % 16 and the columns from 8 * (l / 16) on.
struct Sums {
  float column[8];
};

uint subgroup_index() { return gl_LocalInvocationID.x / 32u; }
Sums no_sums() {
  Sums s;
  for (uint i = 0u; i < 8u; ++i) s.column[i] = 0.0;
  return s;
}

Sums scaled_sums(Sums sums, float factor) {
  for (uint i = 0u; i < 8u; ++i) sums.column[i] *= factor;
  return sums;
}

void unpack(uvec4 halves, out float values[8]) {
  for (uint i = 0u; i < 4u; ++i) {
    values[2u * i] = low_half(halves[i]);
    values[2u * i + 1u] = high_half(halves[i]);
  }
}

void multiply_add(inout Sums sums[4], uint w_at, uint x_at) {
  const uint lane = gl_LocalInvocationID.x % 32u, w_row = lane % 16u, x_row = 8u * (lane / 16u);
  for (uint i = 0u; i < 2u; ++i) {
    for (uint part = 0u; part < 2u; ++part) {
      float w[8], x[8];
      unpack(w_tile[w_at + (16u * i + w_row) * kRow + part], w);
      for (uint j = 0u; j < 2u; ++j) {
        for (uint c = 0u; c < 8u; ++c) {
          unpack(x_tile[x_at + (16u * j + x_row + c) * kRow + part], x);
          for (uint k = 0u; k < 8u; ++k) {
            sums[2u * i + j].column[c] = fma(w[k], x[k], sums[2u * i + j].column[c]);
          }
        }
      }
    }
  }
}

void put_sums(Sums sums, uint at) {
  const uint lane = gl_LocalInvocationID.x % 32u;
  for (uint c = 0u; c < 8u; ++c) out_tile[at + (8u * (lane / 16u) + c) * kOutRow + lane % 16u] = sums.column[c];
}
