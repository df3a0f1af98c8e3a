// A request in progress: its known tokens, how many are computed, and its cache blocks. Invariants until it finishes:
// computed() < known(), except for a request without new tokens; tokens() is the known tokens followed by the drafts;
// while it runs, its cache covers computed() tokens. Owned and changed by the Scheduler; the KvCache changes cache(),
// and the engine uses the sampler. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "src/engine/draft/draft_counts.h"
#include "src/engine/kv_cache.h"
#include "src/engine/request.h"
#include "src/text/sampler.h"

namespace infer {

enum class SequenceState : uint8_t { kWaiting, kRunning, kFinished };

enum class FinishReason : uint8_t {
  kNone,
  kEndOfGeneration,  // an end-of-generation token or one of the request's stop tokens; it is the last token
  kStopString,
  kMaxTokens,
  kContextFull,
  kCancelled,
  kError,
};
std::string_view finish_reason_name(FinishReason reason);

class Sequence {
 public:
  // Sequences are ordered by `rank` (lowest first), then by `arrival`, then, for the choices of one request, by
  // `choice`.
  Sequence(Request request, Sampler sampler, int64_t rank, uint64_t arrival, uint32_t choice);

  const Request& request() const { return request_; }
  RequestId id() const { return request_.id; }
  SequenceState state() const { return state_; }
  FinishReason finish_reason() const { return finish_reason_; }
  Sampler& sampler() { return sampler_; }
  const Sampler& sampler() const { return sampler_; }

  std::span<const TokenId> tokens() const { return tokens_; }                         // known, then drafts
  std::span<const TokenId> known_tokens() const { return tokens().first(n_known_); }  // prompt, then generated
  std::span<const TokenId> generated() const { return known_tokens().subspan(n_prompt_); }
  std::span<const TokenId> drafts() const { return tokens().subspan(n_known_); }
  // All tokens up to and including `position`: the sampler's input for the next one.
  std::span<const TokenId> history(int64_t position) const { return tokens().first(position + 1); }

  int64_t prompt_length() const { return n_prompt_; }
  int64_t known() const { return n_known_; }
  int64_t computed() const { return n_computed_; }
  int64_t remaining() const { return n_known_ - n_computed_; }  // known tokens not yet computed
  int64_t max_known() const { return max_known_; }              // the text ends at this many tokens at the latest
  bool wants_tokens() const { return request_.max_new_tokens != 0; }

  SequenceCache& cache() { return cache_; }
  const SequenceCache& cache() const { return cache_; }

  // Prompt tokens that came from the cache when the sequence first started.
  int64_t cached_prompt_tokens() const { return n_cached_prompt_ < 0 ? 0 : n_cached_prompt_; }
  int32_t preemptions() const { return n_preemptions_; }
  const DraftCounts& draft_counts() const { return drafts_; }

  // Whether this comes before `other`: a total order that never changes.
  bool before(const Sequence& other) const {
    if (rank_ != other.rank_) return rank_ < other.rank_;
    return arrival_ != other.arrival_ ? arrival_ < other.arrival_ : choice_ < other.choice_;
  }

 private:
  friend class Scheduler;

  Request request_;
  Sampler sampler_;
  int64_t rank_;
  uint64_t arrival_;
  uint32_t choice_;
  int32_t size_class_ = 0;  // by the tokens it lacked when it was queued; see Scheduler
  SequenceState state_ = SequenceState::kWaiting;
  FinishReason finish_reason_ = FinishReason::kNone;
  std::vector<TokenId> tokens_;
  int64_t n_prompt_;
  int64_t n_known_;
  int64_t n_computed_ = 0;
  int64_t max_known_ = 0;
  int64_t n_cached_prompt_ = -1;
  int32_t n_preemptions_ = 0;
  DraftCounts drafts_;
  bool held_ = false;
  SequenceCache cache_;
};

}  // namespace infer
