// For matmul_matrix: the 16 x 16 x 16 cooperative matrices of VK_NV_cooperative_matrix. glslc 2023.2 does not support
// those of VK_KHR_cooperative_matrix.
#define Sums fcoopmatNV<32, gl_ScopeSubgroup, 16, 16>
#define Halves fcoopmatNV<16, gl_ScopeSubgroup, 16, 16>

uint subgroup_index() { return gl_SubgroupID; }
Sums no_sums() { return Sums(0.0); }
Sums scaled_sums(Sums sums, float factor) { return sums * factor; }

// sums[2i + j] += the i-th 16 rows from w_at times the j-th 16 rows of x from x_at, both [row][16 values].
void multiply_add(inout Sums sums[4], uint w_at, uint x_at) {
  Halves w[2], x[2];
  [[unroll]] for (uint i = 0u; i < 2u; ++i) {
    coopMatLoadNV(w[i], w_tile, w_at + 16u * kRow * i, kRow, false);
    coopMatLoadNV(x[i], x_tile, x_at + 16u * kRow * i, kRow, true);
  }
  [[unroll]] for (uint i = 0u; i < 2u; ++i) {
    [[unroll]] for (uint j = 0u; j < 2u; ++j) sums[2u * i + j] = coopMatMulAddNV(w[i], x[j], sums[2u * i + j]);
  }
}

// Stores to out_tile as [row of x][row].
void put_sums(Sums sums, uint at) { coopMatStoreNV(sums, out_tile, at, kOutRow, true); }
