// What a model keeps per sequence, as groups of layers that are cached alike. A sequence has one table per group; a
// prefix hit needs all groups. Plain data: the model declares kind and layers, the engine adds the sizes; fixed for the
// life of an engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace infer {

enum class CacheKind : uint8_t {
  kFull,    // keys and values of every position
  kWindow,  // of the last positions
  kLatent,  // one compressed vector per position (multi-head latent attention)
  kState,   // one state of fixed size per sequence (recurrent layers), saved at block borders for prefix hits
};

constexpr std::string_view cache_kind_name(CacheKind kind) {
  constexpr std::string_view kNames[] = {"full", "window", "latent", "state"};
  return kNames[static_cast<size_t>(kind)];
}

struct CacheGroup {
  CacheKind kind = CacheKind::kFull;
  std::vector<int32_t> layers;  // ascending
  size_t bytes = 0;             // of one block (kState: of one slot) in all layers of the group
  int32_t n_blocks = 0;         // blocks (kState: slots) that exist
};

}  // namespace infer
