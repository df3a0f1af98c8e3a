// How many blocks each cache group needs: a pure function of the engine's options and the model's cache groups. Used by
// both the memory plan and the engine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/model/cache_groups.h"

namespace infer {

struct CacheDemand {
  int64_t context = 0;       // tokens of one sequence
  int64_t sequences = 1;     // running concurrently
  int64_t step_tokens = 1;   // token budget of a step
  int64_t cache_tokens = 0;  // of all sequences, for groups that keep every position; 0: a full context for each
  bool drafts = false;       // sequences verify drafts
};

// Checkpoints of recurrent states per running sequence.
inline constexpr int64_t kCheckpointsPerSequence = 2;

// Blocks (kState: slots) per group; at most INT32_MAX each.
// full, latent: for cache_tokens, or for all contexts.
// window: per sequence, what a window and the longest chunk of a step touch; never more than a full group.
// state: one slot per sequence, one more if there are drafts, and the checkpoints.
std::vector<int32_t> cache_blocks(std::span<const CacheGroup> groups, const CacheDemand& demand);

}  // namespace infer
