#include "src/engine/scheduler.h"

#include <algorithm>
#include <utility>

#include "ggml-like/error.h"

namespace infer {
namespace {

bool contains(const std::vector<TokenId>& list, TokenId token) {
  return std::find(list.begin(), list.end(), token) != list.end();
}

}  // namespace

void Scheduler::reset() {
  cache_.reset();
  waiting_.clear();
  running_.clear();
  future_choices_.clear();
  sequences_.clear();
  in_flight_ = false;
}

Sequence* Scheduler::find(RequestId id) {
  const auto found = sequences_.find(id);
  return found == sequences_.end() ? nullptr : found->second.get();
}

const Sequence* Scheduler::find(RequestId id) const {
  const auto found = sequences_.find(id);
  return found == sequences_.end() ? nullptr : found->second.get();
}

StepPlan Scheduler::schedule(int32_t prompt_budget) {
  CHECK_INTERNAL(!in_flight_ && prompt_budget >= 1);
  StepPlan plan;
  plan.sequences.reserve(running_.size());
  step_limit_ = config_.token_budget;
  schedule_decodes(plan);
  step_limit_ = plan.n_tokens + std::min(prompt_budget, config_.token_budget - plan.n_tokens);
  schedule_prompts(plan);
  schedule_drafts(plan);
  work_ += plan.n_tokens;
  in_flight_ = !plan.empty();
  if (in_flight_) plan.copies = cache_.take_copies();
  return plan;
}

bool Scheduler::allocate(Sequence& s, int64_t n) {
  while (!cache_.allocate(s, n)) {
    if (!cache_.evict_retained()) return false;
  }
  return true;
}

void Scheduler::schedule_decodes(StepPlan& plan) {
  // In rank order: the victim of a preemption, the last in rank, is then never one already scheduled.
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence& s = *running_[i];
    if (s.remaining() != 1 || s.held_) continue;
    bool allocated = allocate(s, 1);
    while (!allocated && running_.back() != &s) {
      preempt(*running_.back());
      allocated = allocate(s, 1);
    }
    if (!allocated) {
      CHECK_INTERNAL(running_.size() > 1);  // a sequence fits when it is alone
      preempt(s);
      return;
    }
    add_chunk(s, chunk_size(s, plan, step_limit_), plan);
  }
}

void Scheduler::schedule_drafts(StepPlan& plan) {
  for (ScheduledSequence& scheduled : plan.sequences) {
    Sequence& s = *scheduled.sequence;
    int64_t n = std::min<int64_t>({static_cast<int64_t>(s.drafts().size()), config_.token_budget - plan.n_tokens,
                                   config_.max_outputs - plan.n_outputs});
    while (n > 0 && !cache_.allocate(s, 1 + n, n)) --n;  // drafts never cause eviction or preemption
    s.tokens_.resize(s.n_known_ + n);
    scheduled.n_drafts = static_cast<int32_t>(n);
    scheduled.n_tokens += scheduled.n_drafts;
    plan.n_tokens += scheduled.n_drafts;
    plan.n_outputs += scheduled.n_drafts;
  }
}

int64_t Scheduler::chunk_size(const Sequence& s, const StepPlan& plan, int32_t limit) const {
  const int64_t outputs = config_.max_outputs - plan.n_outputs;
  int64_t n = std::min<int64_t>(s.remaining(), limit - plan.n_tokens);
  if (n > 1) n = cache_.fit_chunk(s, n);
  if (s.request_.wants_prompt_logits()) n = std::min(n, outputs);
  if (n == s.remaining() && s.wants_tokens() && outputs == 0) --n;
  return n;
}

void Scheduler::add_chunk(Sequence& s, int64_t n, StepPlan& plan) {
  if (n <= 0) return;
  ScheduledSequence scheduled;
  scheduled.sequence = &s;
  scheduled.first_position = s.n_computed_;
  scheduled.n_tokens = static_cast<int32_t>(n);
  scheduled.samples = n == s.remaining() && s.wants_tokens();
  int64_t first_output = scheduled.samples ? n - 1 : n;
  if (s.request_.wants_prompt_logits()) {
    first_output = std::clamp<int64_t>(s.request_.logits_from - s.n_computed_, 0, first_output);
  }
  scheduled.first_output = static_cast<int32_t>(first_output);
  plan.n_tokens += scheduled.n_tokens;
  plan.n_outputs += scheduled.n_tokens - scheduled.first_output;
  plan.sequences.push_back(scheduled);
}

void Scheduler::preempt(Sequence& s) {
  std::erase(running_, &s);
  cache_.release(s);
  s.tokens_.resize(s.n_known_);
  s.n_computed_ = 0;
  s.state_ = SequenceState::kWaiting;
  ++s.n_preemptions_;
  ++stats_.preemptions;
  enqueue(s);
}

void Scheduler::commit(const StepPlan& plan, std::span<const std::vector<TokenId>> sampled, std::span<Choice> choices) {
  CHECK_INTERNAL(in_flight_ && sampled.size() == plan.sequences.size());
  in_flight_ = false;
  ++stats_.steps;
  for (size_t i = 0; i < sampled.size(); ++i) {
    Sequence& s = *plan.sequences[i].sequence;
    if (s.state_ != SequenceState::kRunning) {
      s.tokens_.resize(s.n_known_);
      continue;
    }
    const FinishReason reason = advance(s, plan.sequences[i], sampled[i]);
    cache_.publish(s);
    for (Choice& choice : choices) {
      if (choice.parent != s.id() || future_choices_.erase(choice.id) == 0) continue;
      add_choice(s, choice, running_.size() - (reason != FinishReason::kNone));
    }
    if (plan.sequences[i].samples) s.request_.choices.clear();
    if (reason != FinishReason::kNone) {
      finish(s.id(), reason);
    } else {
      cache_.trim(s);
    }
  }
}

FinishReason Scheduler::advance(Sequence& s, const ScheduledSequence& scheduled, std::span<const TokenId> sampled) {
  CHECK_INTERNAL(sampled.empty() != scheduled.samples);
  FinishReason reason = FinishReason::kNone;
  int64_t computed = s.n_computed_ + scheduled.n_tokens;
  if (scheduled.samples) {
    const size_t accepted = sampled.size() - 1;
    CHECK_INTERNAL(accepted <= static_cast<size_t>(scheduled.n_drafts) &&
                   std::equal(sampled.begin(), sampled.end() - 1, s.drafts().begin()));
    computed = s.n_known_ + static_cast<int64_t>(accepted);
    if (scheduled.n_drafts > 0) {
      const DraftCounts drafts = {1, scheduled.n_drafts, static_cast<int64_t>(accepted)};
      stats_.drafts += drafts;
      s.drafts_ += drafts;
    }
    reason = append(s, sampled);
    computed = std::min(computed, s.n_known_);  // the text may have ended before the accepted drafts
  }
  const int64_t valid = scheduled.n_drafts > 0 ? cache_.rollback(s, computed) : computed;
  CHECK_INTERNAL(valid >= s.n_computed_);
  stats_.computed_tokens += valid - s.n_computed_;
  s.n_computed_ = valid;
  if (scheduled.samples && s.remaining() > 1) s.size_class_ = size_class(s.remaining());
  if (!scheduled.samples && s.remaining() == 0) reason = FinishReason::kMaxTokens;
  return reason;
}

FinishReason Scheduler::append(Sequence& s, std::span<const TokenId> tokens) {
  s.tokens_.resize(s.n_known_);
  for (const TokenId token : tokens) {
    s.tokens_.push_back(token);
    ++s.n_known_;
    if (!s.request_.ignore_eog && contains(config_.eog_tokens, token)) return FinishReason::kEndOfGeneration;
    if (contains(s.request_.stop_tokens, token)) return FinishReason::kEndOfGeneration;
    if (s.n_known_ - s.n_prompt_ == s.request_.max_new_tokens) return FinishReason::kMaxTokens;
    if (s.n_known_ >= s.max_known_) return FinishReason::kContextFull;
  }
  return FinishReason::kNone;
}

void Scheduler::finish(RequestId id, FinishReason reason) {
  if (future_choices_.erase(id) > 0) return;
  Sequence* s = find(id);
  if (!s || s->state_ == SequenceState::kFinished) return;
  for (const RequestId choice : s->request_.choices) future_choices_.erase(choice);
  std::erase(s->state_ == SequenceState::kRunning ? running_ : waiting_, s);
  if (s->request_.conversation != 0 && s->request_.reuse_prefix && s->n_computed_ > 0) {
    cache_.retain(*s);
  } else {
    cache_.release(*s);
  }
  if (!in_flight_) s->tokens_.resize(s->n_known_);  // a step in flight may still read its drafts
  s->state_ = SequenceState::kFinished;
  s->finish_reason_ = reason;
}

void Scheduler::forget(uint64_t conversation) {
  CHECK_INTERNAL(!in_flight_);
  cache_.forget(conversation);
}

std::unique_ptr<Sequence> Scheduler::take(RequestId id) {
  CHECK_INTERNAL(!in_flight_);
  const auto found = sequences_.find(id);
  CHECK_INTERNAL(found != sequences_.end() && found->second->state_ == SequenceState::kFinished);
  auto s = std::move(found->second);
  sequences_.erase(found);
  return s;
}

}  // namespace infer
