#version 450
#extension GL_GOOGLE_include_directive : require
// Sorts the (token, rank) pairs of a step by the selected expert and splits them into tiles of 64, for matmul_tiled:
//   tiles[0]: the number of tiles; then for each (expert, offset of its pairs, number of pairs); then the pairs.
// One workgroup. The pairs of an expert stay in the order of the tokens. Without ids, each token uses all experts.

layout(local_size_x = 256) in;
#include "glsl/common.glsl"
layout(set = 0, binding = 1, std430) readonly buffer Ids { int ids[]; };
layout(set = 0, binding = 2, std430) buffer Tiles { int tiles[]; };
layout(push_constant) uniform Push { uint experts, used, count_at, fixed_rows, ids_at, has_ids, tiles_at, pairs_at; } push;

bool has_ids() { return push.has_ids != 0u; }
const uint kMaxExperts = 1024u, kTile = 64u;
shared uint first_pair[kMaxExperts];
shared uint first_tile[kMaxExperts];

void main() {
  const uint lane = gl_LocalInvocationID.x;
  const uint pairs = row_count(push.count_at, push.fixed_rows) * push.used;
  for (uint e = lane; e < push.experts; e += 256u) {
    uint count = has_ids() ? 0u : pairs / push.used;
    for (uint i = 0u; has_ids() && i < pairs; ++i) count += uint(ids[push.ids_at + i]) == e ? 1u : 0u;
    first_pair[e] = count;
  }
  barrier();
  if (lane == 0u) {
    uint pair = 0u, tile = 0u;
    for (uint e = 0u; e < push.experts; ++e) {
      const uint count = first_pair[e];
      first_pair[e] = pair;
      first_tile[e] = tile;
      pair += count;
      tile += (count + kTile - 1u) / kTile;
    }
    tiles[push.tiles_at] = int(tile);
  }
  barrier();
  for (uint e = lane; e < push.experts; e += 256u) {
    const uint first = push.pairs_at + first_pair[e];
    uint count = 0u;
    for (uint i = has_ids() ? 0u : e; i < pairs; i += has_ids() ? 1u : push.used) {
      if (has_ids() && uint(ids[push.ids_at + i]) != e) continue;
      tiles[first + count] = int(i);
      ++count;
    }
    for (uint done = 0u, t = first_tile[e]; done < count; done += kTile, ++t) {
      const uint at = push.tiles_at + 1u + 3u * t;
      tiles[at] = int(e);
      tiles[at + 1u] = int(first + done);
      tiles[at + 2u] = int(min(kTile, count - done));
    }
  }
}
