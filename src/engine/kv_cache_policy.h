// How the blocks of one cache group are used: one policy per CacheKind, each with a pool of its own. KvCache calls the
// policies of all groups together; nothing else uses them. Integers only, one thread.
//
// full, latent: one block per kBlockTokens positions, from the first to the last. All blocks of the known tokens are
//   taken when a sequence starts; generation takes one more at each border and may find none.
// window: likewise, but a block is released once the window of every later query has passed it; its entry becomes
//   kNoBlock. A prefix hit needs only the blocks that the next query sees. Blocks are taken step by step, out of a
//   claim on the pool that each running sequence has from its start to its end, so a step never finds too few.
// state: one slot per running sequence, updated in place. A slot cannot go back by single tokens. So before drafts are
//   computed the slot is copied to a second one, and from there it is restored if any draft is rejected. For prefix
//   hits, the slot is copied to a checkpoint, published like a block, wherever a step ends at a block border within
//   the prompt. Chunks of prompts are cut to end at such a border; generation makes no checkpoints. The slot of a
//   sequence that starts at position 0 holds anything: whoever computes position 0 begins with an empty state.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/engine/block_pool.h"
#include "src/model/cache_groups.h"

namespace infer {

// Block `to` gets the content of block `from`.
struct BlockCopy {
  int32_t group;
  BlockId from, to;
};

// What one sequence holds in one group.
struct GroupTable {
  std::vector<BlockId> blocks;  // of position p: blocks[p / kBlockTokens]; kState: blocks[0] is the slot
  int64_t begin = 0;            // kWindow: the first block that is not released
  int64_t n_published = 0;      // blocks before this one are published, or were
  int64_t most = 0;             // blocks that a running sequence may come to hold; 0 once it has ended
  int64_t state_end = 0;        // kState: tokens that the slot has taken in when the current step is done
  BlockId saved = kNoBlock;     // kState: a copy of the slot from before the drafts
  int64_t saved_end = 0;        // and the tokens in it
};

// How far a sequence is, in tokens.
struct CacheLengths {
  int64_t prompt = 0;
  int64_t known = 0;
  int64_t computed = 0;
  int64_t longest = 0;  // that the sequence may become
  bool publishes = true;
};

class CachePolicy {
 public:
  CachePolicy(int32_t group, int32_t n_blocks, std::vector<BlockCopy>& copies)
      : pool_(n_blocks), group_(group), copies_(copies) {}
  virtual ~CachePolicy() = default;
  const BlockPool& pool() const { return pool_; }

  // Tokens that a sequence may have if it is alone.
  virtual int64_t max_tokens() const = 0;
  // How many of the next n tokens one step may compute; at least 1.
  virtual int64_t fit_chunk(const GroupTable&, const CacheLengths&, int64_t n) const { return n; }

  // The longest beginning of a text that the group can serve, in blocks; `keys` are those of its full blocks.
  virtual int64_t longest_hit(std::span<const PrefixKey> keys) const = 0;
  // The blocks of such a beginning, as a table has them (kState: the checkpoint). Takes no references.
  virtual std::vector<BlockId> hit_blocks(std::span<const PrefixKey> keys) const = 0;
  // Gives a sequence its blocks, after a hit of `n_hit` blocks.
  virtual bool can_start(std::span<const BlockId> hit, int64_t n_hit, const CacheLengths& l) const = 0;
  virtual void start(GroupTable& t, std::vector<BlockId> hit, int64_t n_hit, const CacheLengths& l) = 0;

  // Whether a sequence of the table's first n tokens could continue from it.
  virtual bool holds(const GroupTable& t, int64_t n) const = 0;
  // Gives a sequence the first n tokens of a retained table, which the table passes to. REQUIRES holds(t, n).
  virtual bool can_resume(const GroupTable& t, int64_t n, const CacheLengths& l) const = 0;
  virtual void resume(GroupTable& t, int64_t n, const CacheLengths& l) = 0;
  // Shares the parent's first n tokens with a child.
  virtual bool can_fork(const GroupTable& parent, int64_t n, const CacheLengths& child) const = 0;
  virtual void fork(const GroupTable& parent, GroupTable& t, int64_t n, const CacheLengths& child) = 0;

  // Makes room for a step's tokens [computed, computed + n), the last n_drafts of which may be rejected. False, with
  // nothing changed, where can_extend() is.
  virtual bool can_extend(const GroupTable& t, const CacheLengths& l, int64_t n, int64_t n_drafts) const = 0;
  virtual bool extend(GroupTable& t, const CacheLengths& l, int64_t n, int64_t n_drafts) = 0;
  // Goes back to n tokens, or fewer where the group cannot; returns how many. 0: nothing is left.
  virtual int64_t rollback(GroupTable& t, int64_t n) = 0;
  // Releases what lies behind the first n tokens, published or not; n is what rollback() returned.
  virtual void cut(GroupTable&, int64_t) {}
  virtual void publish(GroupTable& t, std::span<const PrefixKey> keys, const CacheLengths& l) = 0;
  // Releases what no later step of the sequence reads.
  virtual void trim(GroupTable& t, const CacheLengths& l) = 0;
  // The sequence has ended: the table keeps its blocks, but has no claim to more.
  virtual void retire(GroupTable& t) = 0;
  virtual void release(GroupTable& t) = 0;

 protected:
  void copy(BlockId from, BlockId to) { copies_.push_back({group_, from, to}); }

  BlockPool pool_;

 private:
  int32_t group_;
  std::vector<BlockCopy>& copies_;  // of all groups; done in this order before the next step
};

// Blocks that n consecutive positions touch at most, wherever they begin.
constexpr int64_t blocks_touched(int64_t n) { return n <= 0 ? 0 : (n + 2 * kBlockTokens - 2) / kBlockTokens; }

// `max_chunk`: tokens of one sequence in one step. The policy adds its copies to `copies`, which outlives it.
std::unique_ptr<CachePolicy> make_cache_policy(int32_t index, const CacheGroup& group, int64_t max_chunk,
                                               std::vector<BlockCopy>& copies);

}  // namespace infer
