// How the blocks of one cache group are used: one policy per CacheKind, each with its own pool. Only KvCache uses the
// policies; it calls those of all groups together. Integers only, one thread.
//
// full, latent: one block per kBlockTokens positions, from the first to the last. A sequence gets the blocks of all its
//   known tokens when it starts; generation allocates one more at each block boundary and may find none.
// window: the same, but a block is released once the window of every later query has passed it; its entry becomes
//   kNoBlock. A prefix hit needs only the blocks that the next query sees. Blocks are allocated step by step, from a
//   reservation that each running sequence holds from start to end, so a step never runs out.
// state: one slot per running sequence, updated in place. A slot cannot be rolled back token by token, so it is copied
//   to a second slot before drafts are computed, and restored from there if any draft is rejected. For prefix hits, it
//   is copied to a checkpoint, published like a block, wherever a step ends at a block boundary within the prompt.
//   Prompt chunks are cut to end at such a boundary; generation makes no checkpoints. A new sequence's slot is
//   uninitialized: whoever computes position 0 starts from an empty state.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/engine/block_pool.h"
#include "src/model/cache_groups.h"

namespace infer {

// Copies the content of block `from` to block `to`.
struct BlockCopy {
  int32_t group;
  BlockId from, to;
};

// What one sequence holds in one group.
struct GroupTable {
  std::vector<BlockId> blocks;  // position p is in blocks[p / kBlockTokens]; kState: blocks[0] is the slot
  int64_t begin = 0;            // kWindow: the first block not yet released
  int64_t n_published = 0;      // earlier blocks are published, or were
  int64_t most = 0;             // blocks a running sequence may come to hold; 0 once it has ended
  int64_t state_end = 0;        // kState: tokens included in the slot after the current step
  BlockId saved = kNoBlock;     // kState: a copy of the slot before the drafts
  int64_t saved_end = 0;        // the tokens included in it
};

// The progress of a sequence, in tokens.
struct CacheLengths {
  int64_t prompt = 0;
  int64_t known = 0;
  int64_t computed = 0;
  int64_t longest = 0;  // the most tokens it may reach
  bool publishes = true;
};

class CachePolicy {
 public:
  CachePolicy(int32_t group, int32_t n_blocks, std::vector<BlockCopy>& copies)
      : pool_(n_blocks), group_(group), copies_(copies) {}
  virtual ~CachePolicy() = default;
  const BlockPool& pool() const { return pool_; }

  // The most tokens a sequence can have when it runs alone.
  virtual int64_t max_tokens() const = 0;
  // How many of the next n tokens one step may compute; at least 1.
  virtual int64_t fit_chunk(const GroupTable&, const CacheLengths&, int64_t n) const { return n; }

  // The longest prefix that the group can serve, in blocks; `keys` are those of its full blocks.
  virtual int64_t longest_hit(std::span<const PrefixKey> keys) const = 0;
  // The table entries for such a prefix (kState: the checkpoint). Takes no references.
  virtual std::vector<BlockId> hit_blocks(std::span<const PrefixKey> keys) const = 0;
  // Gives a sequence its blocks, after a prefix hit of `n_hit` blocks.
  virtual bool can_start(std::span<const BlockId> hit, int64_t n_hit, const CacheLengths& l) const = 0;
  virtual void start(GroupTable& t, std::vector<BlockId> hit, int64_t n_hit, const CacheLengths& l) = 0;

  // Whether a sequence could continue from the first n tokens of this table.
  virtual bool holds(const GroupTable& t, int64_t n) const = 0;
  // Turns a retained table over to a sequence, with its first n tokens. REQUIRES: holds(t, n).
  virtual bool can_resume(const GroupTable& t, int64_t n, const CacheLengths& l) const = 0;
  virtual void resume(GroupTable& t, int64_t n, const CacheLengths& l) = 0;
  // Shares the parent's first n tokens with a child.
  virtual bool can_fork(const GroupTable& parent, int64_t n, const CacheLengths& child) const = 0;
  virtual void fork(const GroupTable& parent, GroupTable& t, int64_t n, const CacheLengths& child) = 0;

  // Makes room for a step's tokens [computed, computed + n), of which the last n_drafts may be rejected. extend()
  // returns false, and changes nothing, if can_extend() is false.
  virtual bool can_extend(const GroupTable& t, const CacheLengths& l, int64_t n, int64_t n_drafts) const = 0;
  virtual bool extend(GroupTable& t, const CacheLengths& l, int64_t n, int64_t n_drafts) = 0;
  // Goes back to n tokens, or to fewer if the group must. Returns how many; 0: none are left.
  virtual int64_t rollback(GroupTable& t, int64_t n) = 0;
  // Releases everything after the first n tokens, published or not; n is what rollback() returned.
  virtual void cut(GroupTable&, int64_t) {}
  virtual void publish(GroupTable& t, std::span<const PrefixKey> keys, const CacheLengths& l) = 0;
  // Releases what no later step of the sequence reads.
  virtual void trim(GroupTable& t, const CacheLengths& l) = 0;
  // The sequence has ended: the table keeps its blocks but gives up its reservation.
  virtual void retire(GroupTable& t) = 0;
  virtual void release(GroupTable& t) = 0;

 protected:
  void copy(BlockId from, BlockId to) { copies_.push_back({group_, from, to}); }

  BlockPool pool_;

 private:
  int32_t group_;
  std::vector<BlockCopy>& copies_;  // of all groups; made in this order before the next step
};

// The most blocks that n consecutive positions can touch, wherever they begin.
constexpr int64_t blocks_touched(int64_t n) { return n <= 0 ? 0 : (n + 2 * kBlockTokens - 2) / kBlockTokens; }

// `max_chunk`: tokens of one sequence in one step. The policy adds its copies to `copies`, which outlives it.
std::unique_ptr<CachePolicy> make_cache_policy(int32_t index, const CacheGroup& group, int64_t max_chunk,
                                               std::vector<BlockCopy>& copies);

}  // namespace infer
