// Decides what each step computes. There is no prefill or decode phase: every sequence has computed tokens and known
// tokens. The token budget of a step goes first to sequences that lack one token (decodes), then to chunks of prompts,
// then to drafts to verify. Integers only: no tensors, no model, no clock. The KvCache decides what a sequence takes
// from the cache; the scheduler only learns whether there are enough blocks.
//
// A step is schedule(), run by the engine, commit(). A waiting sequence is admitted only if there are blocks for all
// its known tokens, so only decodes can run out of blocks. Then blocks retained for finished conversations are
// evicted; after that the lowest-ranked sequence is preempted: it releases its blocks, waits, and is recomputed later.
//
// Rank is the order of arrival, where each level of priority counts as arriving kTokensPerPriority tokens of work
// earlier. So the work that can overtake a sequence is bounded. The first in rank is never preempted for another, and
// add() has checked that it fits alone: it always advances.
//
// Prompts share what the decodes leave of a step. A quarter goes to the first in rank, so that every prompt finishes
// eventually; the rest goes to short prompts first, running or admissible. Prompts of similar length are computed one
// after another by rank, so that a later one finds their common prefix in the cache.
//
// Owns the cache's bookkeeping and the sequences. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "src/engine/kv_cache.h"
#include "src/engine/request.h"
#include "src/engine/sequence.h"
#include "src/model/cache_groups.h"

namespace infer {

struct SchedulerConfig {
  int32_t token_budget = 512;  // tokens per step
  int32_t max_sequences = 32;  // running at once; at most token_budget and max_outputs
  int32_t max_outputs = 512;   // rows of logits per step
  int32_t max_waiting = 1024;  // length of the queue
  int64_t max_context = 4096;  // tokens per sequence, prompt and answer together
  bool whole_prompts = false;  // each prompt in one step, which has room for it; for encoders
  size_t n_vocab = 0;
  std::vector<TokenId> eog_tokens;  // the model's end-of-generation tokens
};

// A sequence's share of a step: tokens().subspan(first_position, n_tokens), at positions from first_position on. Rows
// [first_output, n_tokens) need logits; first_output == n_tokens if none does.
struct ScheduledSequence {
  Sequence* sequence = nullptr;
  int64_t first_position = 0;
  int32_t n_tokens = 0;
  int32_t first_output = 0;
  int32_t n_drafts = 0;  // the last n_drafts tokens are drafts
  // Tokens are sampled from the last n_drafts + 1 rows. False while the prompt is incomplete, and for requests without
  // new tokens.
  bool samples = false;
  int32_t first_sampled_row() const { return n_tokens - 1 - n_drafts; }
};

struct StepPlan {
  std::vector<ScheduledSequence> sequences;
  std::vector<BlockCopy> copies;  // to be made before the step, in this order
  int32_t n_tokens = 0;
  int32_t n_outputs = 0;
  bool empty() const { return sequences.empty(); }
};

// A further continuation of a prompt (Request::choices), after its first token has been sampled.
struct Choice {
  RequestId parent = 0;
  uint32_t index = 0;  // from 1
  RequestId id = 0;
  Sampler sampler;  // the one that sampled `first`
  TokenId first;
};

struct SchedulerStats {
  int64_t steps = 0;
  int64_t computed_tokens = 0;  // without rejected drafts
  DraftCounts drafts;
  int64_t admissions = 0;         // sequences admitted, including again after a preemption
  int64_t prefix_hits = 0;        // of these, those with any token found in the cache
  int64_t admitted_tokens = 0;    // known tokens at each admission
  int64_t prefix_hit_tokens = 0;  // of these, found in the cache
  int64_t preemptions = 0;
};

class Scheduler {
 public:
  static constexpr int64_t kTokensPerPriority = 256;

  // Throws Error(kInvalidArgument) for impossible settings.
  Scheduler(const SchedulerConfig& config, std::vector<CacheGroup> groups, PrefixHasher hasher = {});

  // Queues a request; false if the queue is full (nothing has changed then).
  // Throws Error(kInvalidArgument) if the request is invalid or longer than the context, and Error(kOutOfMemory) if the
  // cache could not hold it even alone.
  [[nodiscard]] bool add(Request request);

  // Draft tokens that may follow the known ones of a sequence. Its next step verifies as many as the budget, the blocks
  // and the request's limits and mask allow. Ignored while the sequence lacks more than one token.
  void propose(RequestId id, std::span<const TokenId> drafts);

  // The next step; empty if no sequence can run. Must be followed by commit() unless empty. All prompt chunks together
  // have at most `prompt_budget` (at least 1) tokens.
  StepPlan schedule(int32_t prompt_budget = INT32_MAX);

  // Takes the results of the step. sampled[i]: the tokens sampled for plan.sequences[i], in order of its sampled rows,
  // up to and including the first that differs from the draft at its position; empty if !samples. The text ends at the
  // first token that finishes the sequence. Results of sequences that have finished in the meantime are ignored.
  // `choices`: those of the sequences that sampled their first token. Each becomes a sequence that shares its parent's
  // blocks if it can run at once, and otherwise waits. Choices that have already finished are ignored.
  void commit(const StepPlan& plan, std::span<const std::vector<TokenId>> sampled, std::span<Choice> choices = {});

  // Starts a new sequence with the parent's first n_shared tokens (at least the prompt) followed by `next`, a token
  // that `sampler` has already sampled. It shares the parent's blocks if those tokens are computed and it can run at
  // once; otherwise it waits and is computed like any other. The parent may be finished. Must not be called between
  // schedule() and commit(). Throws Error(kInvalidArgument) if the id is taken.
  void fork(RequestId parent, RequestId child, Sampler sampler, int64_t n_shared, TokenId next);

  // Replaces the known tokens of a sequence that has not finished by `tokens` (at least the prompt). Keeps what is
  // computed of the unchanged leading tokens, up to `most_computed`. Must not be called between schedule() and
  // commit().
  void revise(RequestId id, std::span<const TokenId> tokens, int64_t most_computed = INT64_MAX);
  // A held sequence takes part in no step until it is released. Meanwhile it may lose its blocks to others.
  void hold(RequestId id, bool held);

  // Ends a sequence (cancelled, stop string found, error); does nothing for a finished or unknown one. Choices that
  // have not sampled a token yet end with their request, or alone if `id` names a choice. Between schedule() and
  // commit() the sequence's table is gone, but no block is reused before the next schedule().
  void finish(RequestId id, FinishReason reason);

  // Releases what a conversation has retained, if anything. Its full blocks stay cached. Must not be called between
  // schedule() and commit().
  void forget(uint64_t conversation);

  // Drops every sequence and everything cached or retained, but not the statistics. May be called after an exception
  // left any call incomplete. If it throws std::bad_alloc, nothing has changed.
  void reset();

  // Hands over a finished sequence. Must not be called between schedule() and commit().
  std::unique_ptr<Sequence> take(RequestId id);

  Sequence* find(RequestId id);  // nullptr when unknown
  const Sequence* find(RequestId id) const;
  int64_t max_known() const;  // tokens that one sequence may have, by context and by blocks
  bool idle() const { return running_.empty() && waiting_.empty(); }
  std::span<Sequence* const> running() const { return running_; }  // in rank order
  std::span<Sequence* const> waiting() const { return waiting_; }  // in rank order
  const KvCache& cache() const { return cache_; }
  const SchedulerStats& stats() const { return stats_; }
  const SchedulerConfig& config() const { return config_; }

 private:
  // The passes of schedule().
  void schedule_decodes(StepPlan& plan);
  void schedule_prompts(StepPlan& plan);
  void schedule_drafts(StepPlan& plan);

  // How many of a sequence's remaining tokens the step can take if it may have at most `limit` tokens in total.
  int64_t chunk_size(const Sequence& s, const StepPlan& plan, int32_t limit) const;
  void add_chunk(Sequence& s, int64_t n, StepPlan& plan);
  // Allocates blocks for the next n tokens, evicting retained conversations if necessary.
  bool allocate(Sequence& s, int64_t n);
  // Sequences with a prompt to compute that may run in this step.
  std::vector<Sequence*> prompts() const;
  bool may_run(const Sequence& s) const;                          // by Request::max_running
  static void insert(std::vector<Sequence*>& list, Sequence& s);  // in rank order
  void enqueue(Sequence& s);
  static int32_t size_class(int64_t n_lacking);  // lengths within a factor of four are alike
  // Admits a waiting sequence to the running ones; false if there are not enough blocks.
  bool admit(Sequence& s);
  void preempt(Sequence& s);

  // Applies a step's results to one sequence; returns why its text ended.
  FinishReason advance(Sequence& s, const ScheduledSequence& scheduled, std::span<const TokenId> sampled);
  // Adds sampled tokens to the known ones, up to the first that ends the text; returns why it ended.
  FinishReason append(Sequence& s, std::span<const TokenId> tokens);
  // Adds the sequence of a choice. `n_running`: sequences that keep running.
  void add_choice(const Sequence& parent, Choice& choice, size_t n_running);
  void add_fork(const Sequence& parent, std::unique_ptr<Sequence> child, int64_t n_shared, TokenId next,
                size_t n_running);
  bool is_token(TokenId token) const { return token >= 0 && static_cast<size_t>(token) < config_.n_vocab; }
  void check_request(const Request& request) const;

  const SchedulerConfig config_;
  KvCache cache_;
  std::unordered_map<RequestId, std::unique_ptr<Sequence>> sequences_;
  std::unordered_set<RequestId> future_choices_;  // of requests whose prompts are not computed yet
  std::vector<Sequence*> waiting_, running_;      // in rank order
  uint64_t arrivals_ = 0;
  int64_t work_ = 0;        // tokens of all steps so far
  bool in_flight_ = false;  // between schedule() and commit()
  int32_t step_limit_ = 0;  // tokens that the step may have, not counting drafts
  SchedulerStats stats_;
};

}  // namespace infer
