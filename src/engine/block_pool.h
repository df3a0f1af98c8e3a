// Bookkeeping of the blocks of one cache group: integers only, no memory of its own behind them. A block holds the
// keys and values of kBlockTokens tokens. It is free, in use (one or more references), or cached: not in use, but full
// and published under the key of its content, so that a later request finds it. Cached blocks are evicted, the least
// recently used first, when nothing free is left.
// Used by one thread. Wrong use (a free block released, a block published twice) is a bug and ends the process.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "ggml-like/tensor.h"  // kBlockTokens
#include "src/engine/prefix_hash.h"

namespace infer {

using BlockId = int32_t;

// How many blocks n tokens take.
constexpr int64_t blocks_for(int64_t n_tokens) { return (n_tokens + kBlockTokens - 1) / kBlockTokens; }

class BlockPool {
 public:
  explicit BlockPool(int32_t n_blocks);

  struct Stats {
    int32_t total = 0, used = 0, cached = 0, free = 0;  // blocks; total = used + cached + free
    int64_t evictions = 0;                              // since the start
  };
  Stats stats() const;
  // Blocks that allocate() can hand out: free and cached ones.
  int32_t available() const { return static_cast<int32_t>(free_.size()) + n_cached_; }

  // A block with one reference and no content; nullopt when every block is in use. Evicts only when none is free.
  std::optional<BlockId> allocate();
  // One more, or one fewer, reference. A published block without references becomes the most recently used cached
  // one, any other becomes free. Retaining a cached block takes it back into use.
  void retain(BlockId block);
  void release(BlockId block);
  int32_t references(BlockId block) const { return blocks_[block].references; }

  // Makes the content of a full block in use findable. When another block has that content already, the caller's
  // reference moves to that one. Returns the block the caller holds from now on.
  BlockId publish(BlockId block, const PrefixKey& key);
  std::optional<BlockId> find(const PrefixKey& key) const;
  // The blocks of the longest prefix of `keys` that is all here. Takes no references.
  std::vector<BlockId> find_prefix(std::span<const PrefixKey> keys) const;

  // Withdraws the content of a block with one reference, if published, so that its holder may write it. (A fork from
  // the middle of a full block may be the last to hold that block.)
  void make_writable(BlockId block);
  // Whether the only holder may write: one reference and not published.
  bool writable(BlockId block) const { return blocks_[block].references == 1 && !blocks_[block].published; }

 private:
  struct Block {
    int32_t references = 0;
    bool published = false;
    PrefixKey key;                 // of a published block
    int32_t older = 0, newer = 0;  // neighbours among the cached blocks
  };
  void link_newest(BlockId block);
  void unlink(BlockId block);

  std::vector<Block> blocks_;  // [n_blocks + 1]; the last is both ends of the ring of cached blocks
  std::vector<BlockId> free_;
  int32_t n_cached_ = 0;
  int64_t evictions_ = 0;
  std::unordered_map<PrefixKey, BlockId, PrefixKeyHash> by_key_;  // all published blocks, in use or cached
};

}  // namespace infer
