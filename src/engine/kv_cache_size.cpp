#include "src/engine/kv_cache_size.h"

#include <algorithm>

#include "src/engine/kv_cache_policy.h"

namespace infer {
namespace {

int64_t blocks_of(const CacheGroup& group, const CacheDemand& d) {
  const int64_t full = d.cache_tokens > 0 ? blocks_for(d.cache_tokens) : blocks_for(d.context) * d.sequences;
  switch (group.kind) {
    case CacheKind::kFull:
    case CacheKind::kLatent:
      break;
    case CacheKind::kWindow:
      return std::min(full, blocks_touched(group.window - 1 + std::min(d.step_tokens, d.context)) * d.sequences);
    case CacheKind::kState:
      return (1 + d.drafts + kCheckpointsPerSequence) * d.sequences;
  }
  return full;
}

}  // namespace

std::vector<int32_t> cache_blocks(std::span<const CacheGroup> groups, const CacheDemand& demand) {
  std::vector<int32_t> blocks;
  for (const CacheGroup& group : groups) {
    blocks.push_back(static_cast<int32_t>(std::min<int64_t>(blocks_of(group, demand), INT32_MAX)));
  }
  return blocks;
}

}  // namespace infer
