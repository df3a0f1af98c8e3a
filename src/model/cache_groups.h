// What a model caches for each sequence: groups of layers with the same kind of cache. A sequence has one block table
// per group, and a prefix hit must be possible in all groups. Plain data: the model declares kind, window and layers;
// the engine decides how many blocks there are. Fixed for the life of an engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace infer {

enum class CacheKind : uint8_t {
  kFull,    // keys and values of every position
  kWindow,  // keys and values of the last positions
  kLatent,  // one compressed vector per position (multi-head latent attention)
  kState,   // one state of fixed size per sequence (recurrent layers), copied at block boundaries for prefix hits
};

constexpr std::string_view cache_kind_name(CacheKind kind) {
  constexpr std::string_view kNames[] = {"full", "window", "latent", "state"};
  return kNames[static_cast<size_t>(kind)];
}

struct CacheGroup {
  CacheKind kind = CacheKind::kFull;
  std::vector<int32_t> layers;  // ascending
  int32_t window = 0;           // kWindow: positions that a query attends to, including its own; at least 1
  size_t bytes = 0;             // of one block (kState: of one slot) in all layers of the group
  int32_t n_blocks = 0;         // number of blocks (kState: slots)
};

}  // namespace infer
