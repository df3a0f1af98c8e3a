// Tracks the blocks of one cache group. Works on integers only; ModelRunner owns the memory. A block holds the keys and
// values of kBlockTokens tokens, or one recurrent state. It is free, in use (one or more references), or cached:
// without references, but published under the key of its content so that a later request can find it. When no block is
// free, the least recently used cached block is evicted.
// One thread. Misuse (releasing a free block, publishing a block twice) is a bug and terminates the process.
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
inline constexpr BlockId kNoBlock = -1;  // in block tables

// The number of blocks that n tokens take.
constexpr int64_t blocks_for(int64_t n_tokens) { return (n_tokens + kBlockTokens - 1) / kBlockTokens; }

class BlockPool {
 public:
  explicit BlockPool(int32_t n_blocks);

  struct Stats {
    int32_t total = 0, used = 0, cached = 0, free = 0;  // blocks; total = used + cached + free
    int64_t evictions = 0;                              // since the start
  };
  Stats stats() const;
  // Blocks that allocate() can return: free and cached ones.
  int32_t available() const { return static_cast<int32_t>(free_.size()) + n_cached_; }

  // Returns a block with one reference and no content; nullopt when all blocks are in use. Evicts only if none is free.
  std::optional<BlockId> allocate();
  // Adds or removes a reference. A published block that loses its last one becomes the most recently used cached
  // block; any other becomes free. Retaining a cached block takes it back into use.
  void retain(BlockId block);
  void release(BlockId block);
  int32_t references(BlockId block) const { return blocks_[block].references; }

  // Lets others find the content of a block in use. If another block already has that content, the caller's reference
  // moves there. Returns the block that the caller holds afterwards.
  BlockId publish(BlockId block, const PrefixKey& key);
  std::optional<BlockId> find(const PrefixKey& key) const;
  // The blocks of the longest prefix of `keys` that is entirely present. Takes no references.
  std::vector<BlockId> find_prefix(std::span<const PrefixKey> keys) const;

  // Unpublishes a block that has one reference, so that its holder may write to it. (A fork from the middle of a full
  // block may be that block's last holder.)
  void make_writable(BlockId block);
  // Whether its only holder may write to it: one reference and not published.
  bool writable(BlockId block) const { return blocks_[block].references == 1 && !blocks_[block].published; }

 private:
  struct Block {
    int32_t references = 0;
    bool published = false;
    PrefixKey key;                 // of a published block
    int32_t older = 0, newer = 0;  // neighbours in the LRU ring of cached blocks
  };
  void link_newest(BlockId block);
  void unlink(BlockId block);

  std::vector<Block> blocks_;  // [n_blocks + 1]; the last one is the ring's sentinel
  std::vector<BlockId> free_;
  int32_t n_cached_ = 0;
  int64_t evictions_ = 0;
  std::unordered_map<PrefixKey, BlockId, PrefixKeyHash> by_key_;  // all published blocks, in use or cached
};

}  // namespace infer
