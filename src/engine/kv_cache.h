// The cache of all running sequences: which blocks of each cache group hold what they have computed, which blocks later
// requests may find under the hash of their content, and what finished conversations retain. Works on integers only;
// ModelRunner owns the memory. A call concerns all groups of a sequence at once: it succeeds in all of them, or nothing
// has changed. What a group does with its blocks is the business of its policy (kv_cache_policy.h).
// The tables lie in the sequences, and only the cache changes them. Lengths (known, computed) are the scheduler's: the
// cache reads them from the sequence, and returns how many tokens are valid where it cannot keep them all.
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

// What a sequence has in the cache. Empty unless the sequence is running.
class SequenceCache {
 public:
  // Of position p: table(g)[p / kBlockTokens], or kNoBlock where no later query sees it; of a kState group the slot
  // alone. The layout that StepInputs takes.
  std::span<const BlockId> table(size_t group) const {
    return group < tables_.size() ? std::span<const BlockId>(tables_[group].blocks) : std::span<const BlockId>();
  }

 private:
  friend class KvCache;
  std::vector<GroupTable> tables_;  // one per group
  std::vector<PrefixKey> keys_;     // of the full blocks of known tokens, as far as they were needed
  int64_t n_publishable_ = 0;       // full blocks at the last publish()
};

// What the last request of a conversation left: the tokens computed, and where their cache lies.
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

  // Tokens that a sequence may have if it is alone.
  int64_t max_tokens() const;

  // How many leading tokens of a waiting sequence published blocks could serve: at most all known ones but the last,
  // so that there is a token left to compute logits from. Every group must be able to serve them.
  int64_t match_prefix(Sequence& s) const;
  // Gives a waiting sequence its cache, from what its conversation retains or from published blocks where it may take
  // those. Returns how many tokens need not be computed; nullopt when blocks do not suffice.
  std::optional<int64_t> start(Sequence& s);
  // Lets a child that is not running begin with the parent's first n computed tokens. False when blocks do not suffice
  // or a group no longer has the cache of exactly those tokens.
  bool fork(const Sequence& parent, Sequence& child, int64_t n);

  // How many of the next n tokens one step may compute; at least 1.
  int64_t fit_chunk(const Sequence& s, int64_t n) const;
  // Makes room for the step's tokens [computed, computed + n), the last n_drafts of which may be rejected: takes the
  // missing blocks, and copies a shared one that would be written. Call again to add drafts. False when blocks do not
  // suffice.
  bool allocate(Sequence& s, int64_t n, int64_t n_drafts = 0);
  // To be done before the next step, in this order. Hands them over.
  std::vector<BlockCopy> take_copies();

  // After a step, in this order. rollback, after a step with drafts: only the first n tokens are valid. Returns how
  // many really are: fewer when a group cannot go back to exactly n (see kState), 0 when nothing is left.
  int64_t rollback(Sequence& s, int64_t n);
  // For a sequence whose tokens from the n-th on are replaced by others, running or not: they may even be published.
  // Returns how many computed tokens are left, as rollback() does.
  int64_t truncate(Sequence& s, int64_t n);
  // Lets others find what is full and computed, if the request allows.
  void publish(Sequence& s);
  // Releases blocks that no later step of the sequence reads.
  void trim(Sequence& s);

  // Ends the sequence's use of the cache. retain: its conversation keeps the computed tokens that are known.
  void release(Sequence& s);
  void retain(Sequence& s);
  // Releases what the longest-retained conversation keeps; false when there is none.
  bool evict_retained();
  void forget(uint64_t conversation);

  // Drops everything. Throws std::bad_alloc; then nothing has happened.
  void reset();

  std::span<const CacheGroup> groups() const { return groups_; }
  const BlockPool& pool(size_t group) const { return policies_[group]->pool(); }
  std::span<const RetainedConversation> retained() const { return retained_; }  // the oldest first

 private:
  using Policies = std::vector<std::unique_ptr<CachePolicy>>;
  Policies make_policies();
  static CacheLengths lengths(const Sequence& s);
  void extend_keys(Sequence& s, int64_t n_blocks) const;
  std::optional<size_t> find_retained(const Sequence& s) const;
  // Tokens that a sequence can take over from a retained conversation; 0 when some group does not hold just those.
  int64_t match_retained(const Sequence& s, const RetainedConversation& retained) const;
  bool resume(Sequence& s, size_t retained, int64_t n);
  void release_retained(size_t i);

  const std::vector<CacheGroup> groups_;
  const int64_t max_chunk_;
  const PrefixHasher hasher_;
  std::vector<BlockCopy> copies_;
  Policies policies_;                           // one per group
  std::vector<RetainedConversation> retained_;  // at most one per conversation and salt, the oldest first
};

}  // namespace infer
