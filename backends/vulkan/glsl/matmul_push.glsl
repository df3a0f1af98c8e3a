// The push constants of matmuls. Rows of the weight are numbered across all experts; this launch has [row_begin,
// row_end) of them, beginning `weight_skip` bytes after the start of the binding.
layout(push_constant) uniform Push {
  uint n, k, row_begin, row_end, row_bytes, weight_skip;
  uint x_at, x_stride, x_per_expert, bias_at, out_at, count_at, fixed_rows;
  uint used, ids_at, tiles_at;  // for matmul_experts; else used is 0
  uint flags;
} push;
bool has_experts() { return push.used != 0u; }
bool has_bias() { return (push.flags & 1u) != 0u; }
// Whether rows of x begin at multiples of 16 bytes and consist of whole groups.
bool is_aligned() { return (push.flags & 2u) != 0u; }
// False: row i of each token is for expert i.
bool has_ids() { return (push.flags & 4u) != 0u; }
