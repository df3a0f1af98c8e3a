// What the products are told. Rows of the weight count through all experts; this launch sees [row_begin, row_end) of
// them, whose first byte is `weight_skip` behind the start of the binding.
layout(push_constant) uniform Push {
  uint n, k, row_begin, row_end, row_bytes, weight_skip;
  uint x_at, x_stride, x_per_expert, bias_at, out_at, count_at, fixed_rows;
  uint used, ids_at, tiles_at;  // of products with experts; used is 0 for others
  uint flags;
} push;
bool has_experts() { return push.used != 0u; }
bool has_bias() { return (push.flags & 1u) != 0u; }
// Rows of x begin at multiples of 16 bytes and hold whole groups.
bool is_aligned() { return (push.flags & 2u) != 0u; }
