// Columns of a state [n, d] of each head, for delta_rule and wkv. A workgroup has 32 columns of one head; a column's
// values are divided among kParts lanes, which keep theirs in registers through the step. Sums over a column go through
// shared memory, in separate places for even and odd tokens, so that a token needs only one barrier. Included after
// runs.glsl.

const uint kColumns = 32u, kParts = 8u, kLanes = kColumns * kParts;
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kN = 16;
layout(constant_id = 1) const uint kPerLane = 2;   // values of a lane: n / kParts, rounded up
layout(constant_id = 2) const uint kTile = 16;     // tokens whose decays are computed together, at most 16
layout(constant_id = 3) const uint kDecays = 16;  // of a tile

float values[kPerLane];
shared float decays[kDecays];
shared float sums[4u * kLanes];

uint lane_of() { return gl_LocalInvocationID.x; }
uint column_of() { return lane_of() % kColumns; }
uint first_own() { return lane_of() / kColumns * kPerLane; }

// `state`: the start of the column.
void load_column(uint state, uint stride, bool empty) {
  [[unroll]] for (uint k = 0u; k < kPerLane; ++k) {
    const uint j = first_own() + k;
    values[k] = empty || j >= kN ? 0.0 : slots[state + j * stride];
  }
}
void store_column(uint state, uint stride) {
  [[unroll]] for (uint k = 0u; k < kPerLane; ++k) {
    const uint j = first_own() + k;
    if (j < kN) slots[state + j * stride] = values[k];
  }
}

// Sums over a column: of what a token reads, and of its result. Each has two places, for even and odd tokens.
const uint kRead = 0u, kResult = 2u;
void keep_sum(uint which, uint turn, float x) { sums[(which + turn % 2u) * kLanes + lane_of()] = x; }
float column_sum(uint which, uint turn) {
  const uint at = (which + turn % 2u) * kLanes + column_of();
  precise const float a = sums[at] + sums[at + 32u], b = sums[at + 64u] + sums[at + 96u];
  precise const float c = sums[at + 128u] + sums[at + 160u], d = sums[at + 192u] + sums[at + 224u];
  precise const float all = (a + b) + (c + d);
  return all;
}
