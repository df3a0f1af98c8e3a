// Decides what each step computes. There is no prefill phase and no decode phase: every sequence has tokens computed
// and tokens known, and one token budget per step goes first to the sequences that lack one token (decodes), then to
// chunks of prompts, then to drafts that a verification may accept. Integers only: no tensors, no model, no clock.
//
// A step is schedule(), run by the engine, commit(). All blocks a waiting sequence needs for its known tokens are taken
// when it is admitted, so only decodes can run out of blocks; then the last in rank is preempted: it gives its blocks
// back, waits, and is computed again later.
//
// Rank is the order of arrival, in which each level of priority counts as kTokensPerPriority tokens of work earlier: a
// sequence is overtaken only by what comes within its difference of priorities in tokens, never for ever.
// The first in rank is never preempted for another, and what it needs was checked by add(): it always advances.
// What ended requests of conversations hold is dropped before any sequence waits or is preempted for want of blocks.
//
// Prompts share what a step has left beside its decodes. A quarter goes to the first in rank, so that every prompt
// comes to its end; the rest to short prompts before long ones, whether they run or wait with a place free. Prompts of
// like length go in rank, one after the other, so that the later ones find what they share with the earlier in the
// cache.
//
// Owns the block pools and the sequences. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "src/engine/block_pool.h"
#include "src/engine/request.h"
#include "src/engine/sequence.h"
#include "src/model/cache_groups.h"

namespace infer {

struct SchedulerConfig {
  int32_t token_budget = 512;  // tokens per step
  int32_t max_sequences = 32;  // running at once; at most token_budget and max_outputs
  int32_t max_outputs = 512;   // rows with logits per step
  int32_t max_waiting = 1024;  // length of the queue
  int64_t max_context = 4096;  // tokens of one sequence, prompt and answer together
  size_t n_vocab = 0;
  std::vector<TokenId> eog_tokens;  // end-of-generation tokens of the model
};

// A sequence's share of a step: tokens().subspan(first_position, n_tokens), at positions from first_position on.
// Rows [first_output, n_tokens) need logits; first_output == n_tokens when none does.
struct ScheduledSequence {
  Sequence* sequence = nullptr;
  int64_t first_position = 0;
  int32_t n_tokens = 0;
  int32_t first_output = 0;
  int32_t n_drafts = 0;  // the last n_drafts of the tokens are drafts
  // The rows from which tokens are drawn are the last n_drafts + 1; none while the prompt is incomplete, or when the
  // request wants no tokens.
  bool samples = false;
  int32_t first_sampled_row() const { return n_tokens - 1 - n_drafts; }
};

// Block `to` gets the content of block `from`.
struct BlockCopy {
  int32_t group;
  BlockId from, to;
};

struct StepPlan {
  std::vector<ScheduledSequence> sequences;
  std::vector<BlockCopy> copies;  // to be done before the step, in this order
  int32_t n_tokens = 0;
  int32_t n_outputs = 0;
  bool empty() const { return sequences.empty(); }
};

// A further continuation of a prompt (Request::choices), once its first token is drawn.
struct Choice {
  RequestId parent = 0;
  uint32_t index = 0;  // from 1
  RequestId id = 0;
  Sampler sampler;  // which drew
  TokenId first;
};

struct SchedulerStats {
  int64_t steps = 0;
  int64_t computed_tokens = 0;  // those of drafts that were rejected are not counted
  int64_t proposed_drafts = 0;  // drafts that were verified
  int64_t accepted_drafts = 0;
  int64_t admissions = 0;         // sequences that were given a place, again after each preemption
  int64_t prefix_hits = 0;        // of these, with any token found in the cache
  int64_t admitted_tokens = 0;    // known tokens of sequences at each admission
  int64_t prefix_hit_tokens = 0;  // of these, found in the cache
  int64_t preemptions = 0;
};

class Scheduler {
 public:
  static constexpr int64_t kTokensPerPriority = 256;

  // Throws Error(kInvalidArgument) for impossible settings, Error(kUnsupported) for groups other than full ones.
  Scheduler(const SchedulerConfig& config, std::vector<CacheGroup> groups, PrefixHasher hasher = {});

  // Queues a request; false when the queue is full (nothing has happened then).
  // Throws Error(kInvalidArgument) when the request is wrong or longer than the context, Error(kOutOfMemory) when it
  // could not be held even alone.
  [[nodiscard]] bool add(Request request);

  // Tokens that may follow the known ones of a sequence; verified by its next step as far as budget, blocks and the
  // request's limits allow. Ignored while the sequence lacks more than one token.
  void propose(RequestId id, std::span<const TokenId> drafts);

  // The next step; empty when no sequence can run. Must be followed by commit() unless it is empty. While there are
  // decodes, the chunks of prompts have at most `prompt_budget` (at least 1) tokens together.
  StepPlan schedule(int32_t prompt_budget = INT32_MAX);

  // Takes the step's results: sampled[i] are the tokens drawn for plan.sequences[i], one after another from its
  // sampled rows, up to and including the first that differs from the draft at its place. Empty where !samples.
  // Text ends at the first token that finishes the sequence. Results of sequences finished meanwhile are ignored.
  // `choices`: of the sequences that drew their first token; these become sequences, which share the parent's blocks
  // where a place among the running is free, and else wait for one. Choices that were finished before are ignored.
  void commit(const StepPlan& plan, std::span<const std::vector<TokenId>> sampled, std::span<Choice> choices = {});

  // A new sequence of the parent's first n_shared tokens (at least the prompt) followed by `next`, a token already
  // drawn by `sampler`. It shares the parent's blocks when those tokens are computed and there is a place among the
  // running; else it waits its turn and is computed like any other. The parent may be finished. Not between
  // schedule() and commit(). Throws Error(kInvalidArgument) when the id is taken.
  void fork(RequestId parent, RequestId child, Sampler sampler, int64_t n_shared, TokenId next);

  // Ends a sequence (cancelled, stop string found, error); without effect on a finished or unknown one. Choices that
  // have not drawn a token yet end with their request, or alone when `id` is that of a choice. Between
  // schedule() and commit() its block table is gone but its blocks are given to nobody before the next schedule().
  void finish(RequestId id, FinishReason reason);

  // Gives back what a conversation holds, if anything. Its full blocks stay in the cache. Not between schedule() and
  // commit().
  void forget(uint64_t conversation);

  // Drops every sequence and all that conversations and the prefix cache hold; the statistics stay. Whatever call was
  // left half done by an exception, the scheduler is as good as new. Throws std::bad_alloc; then nothing has happened.
  void reset();

  // Hands over a finished sequence. Not between schedule() and commit().
  std::unique_ptr<Sequence> take(RequestId id);

  Sequence* find(RequestId id);  // nullptr when unknown
  bool idle() const { return running_.empty() && waiting_.empty(); }
  std::span<Sequence* const> running() const { return running_; }  // in rank
  std::span<Sequence* const> waiting() const { return waiting_; }  // in rank
  // Conversations whose last state is kept, and the blocks of one of them, i < n_held().
  size_t n_held() const { return held_.size(); }
  std::span<const BlockId> held_blocks(size_t i, size_t group) const { return held_[i].tables[group].blocks; }
  const BlockPool& pool(size_t group) const { return pools_[group]; }
  const SchedulerStats& stats() const { return stats_; }
  const SchedulerConfig& config() const { return config_; }

 private:
  // What the last request of a conversation left: the tokens computed, and where their keys and values lie.
  struct Held {
    uint64_t conversation = 0;
    std::string cache_salt;
    std::vector<TokenId> tokens;
    std::vector<Sequence::Table> tables;  // one per cache group; each covers the tokens
  };

  // The passes of schedule().
  void schedule_decodes(StepPlan& plan);
  void schedule_prompts(StepPlan& plan);
  void schedule_drafts(StepPlan& plan);

  // Adds tokens of a sequence, as many as it lacks, while the step has fewer than `limit`.
  void add_chunk(Sequence& s, StepPlan& plan, int32_t limit);
  // Sequences that have a prompt to compute and may do so in this step.
  std::vector<Sequence*> prompts() const;
  bool may_run(const Sequence& s) const;                          // by Request::max_running
  static void insert(std::vector<Sequence*>& list, Sequence& s);  // in rank
  // Puts a sequence into the queue.
  void enqueue(Sequence& s);
  // Moves a waiting sequence to the running ones; false where blocks do not suffice.
  bool admit(Sequence& s, StepPlan& plan);
  bool start(Sequence& s, StepPlan& plan);
  // The blocks of the sequence's beginning that are in the cache: of each group as many.
  std::vector<std::vector<BlockId>> find_cached(Sequence& s);
  // Running sequences that may yet need a further block of this group. Admission leaves each of them one, or the one
  // admitted would soon be preempted again.
  int64_t growing(size_t group) const;
  // As start(), from the first n_held tokens of what the sequence's conversation left.
  bool start_from_held(Sequence& s, std::vector<Held>::iterator held, int64_t n_held, StepPlan& plan);
  // The sequence of fork() and of a choice. `n_running` sequences keep their places.
  void add_fork(const Sequence& parent, std::unique_ptr<Sequence> child, int64_t n_shared, TokenId next,
                size_t n_running);
  std::vector<Held>::iterator find_held(const Sequence& s);
  // The sequence's computed tokens, with their blocks, become what its conversation holds.
  void hold(Sequence& s);
  void drop(std::vector<Held>::iterator held);
  bool drop_oldest_held();  // false: there was none
  void set_running(Sequence& s);
  void preempt(Sequence& s);
  void release_blocks(Sequence& s);
  void release(size_t group, Sequence::Table& table);
  // Makes room for the tokens [computed, computed + n): missing blocks, and a copy of a shared block that would be
  // written. False, with nothing done, when blocks do not suffice.
  bool reserve(Sequence& s, int64_t n, StepPlan& plan);

  // Adds drawn tokens to the known ones, up to the first that ends the text; why it ended.
  FinishReason append(Sequence& s, std::span<const TokenId> tokens);
  void publish_full_blocks(Sequence& s);
  void extend_keys(Sequence& s, int64_t n_blocks);
  void trim_tables(Sequence& s);
  void check_request(const Request& request) const;
  int64_t max_known() const;  // tokens that one sequence may have, by context and by blocks

  const SchedulerConfig config_;
  const std::vector<CacheGroup> groups_;
  const PrefixHasher hasher_;
  std::vector<BlockPool> pools_;  // one per group
  std::unordered_map<RequestId, std::unique_ptr<Sequence>> sequences_;
  std::unordered_set<RequestId> future_choices_;  // of requests whose prompts are not computed yet
  std::vector<Sequence*> waiting_, running_;      // in rank
  std::vector<Held> held_;                        // at most one per conversation, oldest first
  uint64_t arrivals_ = 0;
  int64_t work_ = 0;        // tokens of all steps
  bool in_flight_ = false;  // between schedule() and commit()
  int32_t step_limit_ = 0;  // tokens that the step may have before drafts are added
  SchedulerStats stats_;
};

}  // namespace infer
