// For GEMM with many tokens: the 64 rows of the weight and up to 64 rows of x that a workgroup multiplies. With experts
// the rows of x come from the list of moe_group: tiles of (token, rank) pairs that selected the same expert.
layout(set = 0, binding = 4, std430) readonly buffer Tiles { int tiles[]; };
layout(set = 0, binding = 5, std430) writeonly buffer Out { float out_values[]; };
layout(set = 0, binding = 3, std430) readonly buffer Bias { float bias_values[]; };

const uint kTile = 64u;
shared uint x_rows[kTile];  // rows of the output; kFixedRows past the last one

struct Tile {
  uint first_row, last_row;  // of the weight, numbered across all experts
  uint out_shift;            // the row of the weight that is column 0 of the output
  bool empty;
};

// Lanes 0 to 63 fill x_rows; a barrier must follow.
Tile find_tile(uint lane) {
  Tile t;
  t.empty = true;
  if (has_experts()) {
    if (gl_WorkGroupID.y >= uint(tiles[push.tiles_at])) return t;
    // Per tile: its expert, its first pair in the list, the number of pairs. The list follows the last tile.
    const uint at = push.tiles_at + 1u + 3u * gl_WorkGroupID.y;
    t.out_shift = uint(tiles[at]) * push.n;
    t.first_row = t.out_shift + gl_WorkGroupID.x * kTile;
    t.last_row = min(t.out_shift + push.n, push.row_end);
    t.empty = t.first_row + kTile <= push.row_begin || t.first_row >= t.last_row;
    if (lane < kTile) x_rows[lane] = lane < uint(tiles[at + 2u]) ? uint(tiles[uint(tiles[at + 1u]) + lane]) : kFixedRows;
  } else {
    const uint rows_of_x = row_count(push.count_at, push.fixed_rows), row = gl_WorkGroupID.y * kTile + lane;
    t.out_shift = 0u;
    t.first_row = push.row_begin + gl_WorkGroupID.x * kTile;
    t.last_row = push.row_end;
    t.empty = gl_WorkGroupID.y * kTile >= rows_of_x;
    if (lane < kTile) x_rows[lane] = row < rows_of_x ? row : kFixedRows;
  }
  return t;
}

// The offset in bytes of row `row` of the weight, or of the nearest row of the tile.
uint weight_at(Tile t, uint row) {
  return push.weight_skip + (clamp(row, push.row_begin, t.last_row - 1u) - push.row_begin) * push.row_bytes;
}
// The row of x from which row `x_row` of the output is computed.
uint x_row_of(uint x_row) { return has_experts() && push.x_per_expert == 0u ? x_row / push.used : x_row; }

void store(Tile t, uint row, uint x_row, float y) {
  if (row < push.row_begin || row >= t.last_row) return;
  if (has_bias()) y += bias_values[push.bias_at + row];
  out_values[push.out_at + x_row * push.n + row - t.out_shift] = y;
}
