#include "src/engine/block_pool.h"

#include "ggml-like/error.h"
#include "ggml-like/message.h"

namespace infer {

BlockPool::BlockPool(int32_t n_blocks) {
  if (n_blocks < 1) {
    throw Error(ErrorCode::kInvalidArgument, expected_found("cache", "at least 1 block", n_blocks));
  }
  blocks_.resize(static_cast<size_t>(n_blocks) + 1);
  blocks_.back().older = blocks_.back().newer = n_blocks;
  free_.reserve(n_blocks);
  for (BlockId block = n_blocks - 1; block >= 0; --block) free_.push_back(block);
}

BlockPool::Stats BlockPool::stats() const {
  const int32_t total = static_cast<int32_t>(blocks_.size()) - 1;
  return {total, total - available(), n_cached_, static_cast<int32_t>(free_.size()), evictions_};
}

void BlockPool::link_newest(BlockId block) {
  const int32_t end = static_cast<int32_t>(blocks_.size()) - 1;
  const int32_t last = blocks_[end].older;
  blocks_[block].older = last;
  blocks_[block].newer = end;
  blocks_[last].newer = block;
  blocks_[end].older = block;
  ++n_cached_;
}

void BlockPool::unlink(BlockId block) {
  blocks_[blocks_[block].older].newer = blocks_[block].newer;
  blocks_[blocks_[block].newer].older = blocks_[block].older;
  --n_cached_;
}

std::optional<BlockId> BlockPool::allocate() {
  BlockId block;
  if (!free_.empty()) {
    block = free_.back();
    free_.pop_back();
  } else if (n_cached_ > 0) {
    block = blocks_.back().newer;  // head of the ring: least recently used
    unlink(block);
    by_key_.erase(blocks_[block].key);
    blocks_[block].published = false;
    ++evictions_;
  } else {
    return std::nullopt;
  }
  blocks_[block].references = 1;
  return block;
}

void BlockPool::retain(BlockId block) {
  Block& b = blocks_[block];
  CHECK_INTERNAL(b.references > 0 || b.published);
  if (b.references++ == 0) unlink(block);
}

void BlockPool::release(BlockId block) {
  Block& b = blocks_[block];
  CHECK_INTERNAL(b.references > 0);
  if (--b.references > 0) return;
  if (b.published) {
    link_newest(block);
  } else {
    free_.push_back(block);
  }
}

BlockId BlockPool::publish(BlockId block, const PrefixKey& key) {
  Block& b = blocks_[block];
  CHECK_INTERNAL(b.references > 0 && !b.published);
  const auto [entry, fresh] = by_key_.try_emplace(key, block);
  if (!fresh) {
    retain(entry->second);
    release(block);
    return entry->second;
  }
  b.published = true;
  b.key = key;
  return block;
}

void BlockPool::make_writable(BlockId block) {
  Block& b = blocks_[block];
  CHECK_INTERNAL(b.references == 1);
  if (b.published) by_key_.erase(b.key);
  b.published = false;
}

std::optional<BlockId> BlockPool::find(const PrefixKey& key) const {
  const auto entry = by_key_.find(key);
  if (entry == by_key_.end()) return std::nullopt;
  return entry->second;
}

std::vector<BlockId> BlockPool::find_prefix(std::span<const PrefixKey> keys) const {
  std::vector<BlockId> found;
  for (const PrefixKey& key : keys) {
    const auto block = find(key);
    if (!block) break;
    found.push_back(*block);
  }
  return found;
}

}  // namespace infer
