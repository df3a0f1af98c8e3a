// The cache of all running sequences: which blocks of each cache group hold their computed tokens, which blocks later
// requests can find by the hash of their content, and what finished conversations retain. Works on integers only;
// ModelRunner owns the memory. A call covers all groups of a sequence: it succeeds in all of them, or changes nothing.
// How a group uses its blocks is up to its policy (kv_cache_policy.h).
// The tables are stored in the sequences, and only the cache changes them. Lengths (known, computed) belong to the
// scheduler: the cache reads them from the sequence, and returns how many tokens are valid if it cannot keep them all.
// One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/engine/kv_cache_policy.h"
#include "src/engine/prefix_hash.h"

namespace infer {

class Sequence;

// A sequence's part of the cache. Empty unless the sequence is running.
class SequenceCache {
 public:
  // Position p is in table(g)[p / kBlockTokens], or kNoBlock if no later query sees it; a kState group has only its
  // slot. This is the layout that StepInputs takes.
  std::span<const BlockId> table(size_t group) const {
    return group < tables_.size() ? std::span<const BlockId>(tables_[group].blocks) : std::span<const BlockId>();
  }

 private:
  friend class KvCache;
  std::vector<GroupTable> tables_;  // one per group
  std::vector<PrefixKey> keys_;     // of the full blocks of known tokens; computed as needed
  int64_t n_publishable_ = 0;       // full blocks at the last publish()
};

// What the last request of a conversation left in the cache: its computed tokens and their blocks.
struct RetainedConversation {
  uint64_t conversation = 0;
  std::string cache_salt;
  std::vector<TokenId> tokens;
  std::vector<GroupTable> tables;  // one per group
};

class KvCache {
 public:
  // `max_chunk`: tokens of one sequence in one step. Throws Error(kInvalidArgument) for impossible groups.
  KvCache(std::vector<CacheGroup> groups, int64_t max_chunk, PrefixHasher hasher);

  // The most tokens a sequence can have when it runs alone.
  int64_t max_tokens() const;

  // How many leading tokens of a waiting sequence all groups can serve from published blocks. Never the last known
  // token: it must be computed to get logits.
  int64_t match_prefix(Sequence& s) const;
  // Gives a waiting sequence its blocks, reusing what its conversation retains, or published blocks if it may. Returns
  // how many tokens need not be computed; nullopt if there are not enough blocks.
  std::optional<int64_t> start(Sequence& s);
  // Starts a child, which is not running, with the parent's first n computed tokens. False if there are not enough
  // blocks, or if a group no longer has exactly those tokens.
  bool fork(const Sequence& parent, Sequence& child, int64_t n);

  // How many of the next n tokens one step may compute; at least 1.
  int64_t fit_chunk(const Sequence& s, int64_t n) const;
  // Makes room for the step's tokens [computed, computed + n), of which the last n_drafts may be rejected: allocates
  // missing blocks, and copies a shared one before it is written. Call again to add drafts. False if there are not
  // enough blocks.
  bool allocate(Sequence& s, int64_t n, int64_t n_drafts = 0);
  // The copies to make before the next step, in this order. Clears the list.
  std::vector<BlockCopy> take_copies();

  // After a step, call these in this order. rollback, after a step with drafts: only the first n tokens are valid.
  // Returns how many remain: fewer if a group cannot go back to exactly n (see kState), 0 if none.
  int64_t rollback(Sequence& s, int64_t n);
  // For a sequence, running or not, whose tokens from the n-th on are replaced; those may already be published. Returns
  // how many computed tokens remain, as rollback() does.
  int64_t truncate(Sequence& s, int64_t n);
  // Publishes full computed blocks, if the request allows it.
  void publish(Sequence& s);
  // Releases blocks that no later step of the sequence reads.
  void trim(Sequence& s);

  // Both end the sequence's use of the cache. After retain(), its conversation keeps the computed known tokens.
  void release(Sequence& s);
  void retain(Sequence& s);
  // Releases what the longest-retained conversation keeps; false if there is none.
  bool evict_retained();
  void forget(uint64_t conversation);

  // Drops everything. If it throws std::bad_alloc, nothing has changed.
  void reset();

  std::span<const CacheGroup> groups() const { return groups_; }
  const BlockPool& pool(size_t group) const { return policies_[group]->pool(); }
  std::span<const RetainedConversation> retained() const { return retained_; }  // oldest first

 private:
  using Policies = std::vector<std::unique_ptr<CachePolicy>>;
  Policies make_policies();
  static CacheLengths lengths(const Sequence& s);
  void extend_keys(Sequence& s, int64_t n_blocks) const;
  std::optional<size_t> find_retained(const Sequence& s) const;
  // How many tokens a sequence can take over from a retained conversation; 0 if some group does not hold exactly those.
  int64_t match_retained(const Sequence& s, const RetainedConversation& retained) const;
  bool resume(Sequence& s, size_t retained, int64_t n);
  void release_retained(size_t i);

  const std::vector<CacheGroup> groups_;
  const int64_t max_chunk_;
  const PrefixHasher hasher_;
  std::vector<BlockCopy> copies_;
  Policies policies_;                           // one per group
  std::vector<RetainedConversation> retained_;  // at most one per conversation and salt, oldest first
};

}  // namespace infer
