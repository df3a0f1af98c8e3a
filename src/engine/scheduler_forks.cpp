// The part of the scheduler for sequences that continue another: further choices of a prompt, and forks.
#include <utility>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "src/engine/scheduler.h"

namespace infer {

void Scheduler::fork(RequestId parent_id, RequestId child_id, Sampler sampler, int64_t n_shared, TokenId next) {
  CHECK_INTERNAL(!in_flight_);
  const Sequence* parent = find(parent_id);
  CHECK_INTERNAL(parent && n_shared >= parent->n_prompt_ && n_shared <= parent->n_known_ &&
                 n_shared < parent->max_known_);
  if (sequences_.contains(child_id) || future_choices_.contains(child_id)) {
    throw Error(ErrorCode::kInvalidArgument, expected_found("scheduler", "an unused request id", child_id));
  }
  Request request = parent->request_;
  request.id = child_id;
  auto child = std::make_unique<Sequence>(std::move(request), std::move(sampler), parent->rank_, arrivals_++, 0);
  add_fork(*parent, std::move(child), n_shared, next, running_.size());
}

void Scheduler::add_choice(const Sequence& parent, Choice& choice, size_t n_running) {
  Request request = parent.request_;
  request.id = choice.id;
  request.conversation = 0;  // only one answer continues it
  request.logits_from = -1;
  auto child = std::make_unique<Sequence>(std::move(request), std::move(choice.sampler), parent.rank_, parent.arrival_,
                                          choice.index);
  add_fork(parent, std::move(child), parent.n_prompt_, choice.first, n_running);
}

void Scheduler::add_fork(const Sequence& parent, std::unique_ptr<Sequence> child, int64_t n_shared, TokenId next,
                         size_t n_running) {
  Sequence& s = *child;
  sequences_.emplace(s.id(), std::move(child));
  s.request_.choices.clear();
  s.tokens_.assign(parent.tokens_.begin(), parent.tokens_.begin() + n_shared);
  s.n_known_ = n_shared;
  s.max_known_ = parent.max_known_;
  const bool has_place = parent.state_ == SequenceState::kRunning && n_shared <= parent.n_computed_ &&
                         n_running < static_cast<size_t>(config_.max_sequences) && may_run(s);
  if (has_place && cache_.fork(parent, s, n_shared)) {
    s.n_computed_ = n_shared;
    s.n_cached_prompt_ = s.n_prompt_;
    s.state_ = SequenceState::kRunning;
    insert(running_, s);
  } else {
    enqueue(s);
  }
  const FinishReason reason = append(s, std::span(&next, 1));
  if (reason != FinishReason::kNone) finish(s.id(), reason);
}

}  // namespace infer
