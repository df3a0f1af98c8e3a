// The part of the scheduler for prompts: which wait, which are admitted, and how they share a step.
#include <algorithm>
#include <bit>
#include <optional>

#include "ggml-like/error.h"
#include "src/engine/scheduler.h"

namespace infer {
namespace {

bool in_rank(const Sequence* a, const Sequence* b) { return a->before(*b); }

}  // namespace

void Scheduler::insert(std::vector<Sequence*>& list, Sequence& s) {
  list.insert(std::lower_bound(list.begin(), list.end(), &s, in_rank), &s);
}

bool Scheduler::may_run(const Sequence& s) const {
  if (s.request_.max_running == 0) return true;
  return std::count_if(running_.begin(), running_.end(), [&](auto r) { return r->arrival_ == s.arrival_; }) <
         s.request_.max_running;
}

std::vector<Sequence*> Scheduler::prompts() const {
  std::vector<Sequence*> result;
  for (Sequence* s : running_) {
    if (s->remaining() > 1 && !s->held_) result.push_back(s);
  }
  if (running_.size() == static_cast<size_t>(config_.max_sequences)) return result;
  for (Sequence* s : waiting_) {
    if (may_run(*s) && !s->held_) result.push_back(s);
  }
  return result;
}

void Scheduler::schedule_prompts(StepPlan& plan) {
  if (plan.n_tokens >= step_limit_) return;
  std::vector<Sequence*> queue = prompts();
  const auto waits = [](const Sequence* s) { return s->state_ == SequenceState::kWaiting; };
  const auto first_in_rank = [&] {
    return queue.empty() ? nullptr : *std::min_element(queue.begin(), queue.end(), in_rank);
  };
  Sequence* first = first_in_rank();
  // If there are not enough blocks for the first in rank, no lower-ranked sequence may take any.
  if (first && waits(first) && !admit(*first)) {
    std::erase_if(queue, waits);
    first = first_in_rank();
  }
  if (!first) return;
  std::stable_sort(queue.begin(), queue.end(), [](const Sequence* a, const Sequence* b) {
    return a->size_class_ != b->size_class_ ? a->size_class_ < b->size_class_ : a->before(*b);
  });
  const int32_t left = step_limit_ - plan.n_tokens;
  const int32_t quarter = left >= 4 ? left / 4 : stats_.steps % 4 == 0;
  const int64_t share = config_.whole_prompts ? left : quarter;
  int32_t kept = static_cast<int32_t>(std::min(share, first->remaining()));
  bool admits = true;
  for (Sequence* s : queue) {
    if (s == first) kept = 0;
    if (plan.n_tokens >= step_limit_ - kept) continue;
    if (config_.whole_prompts && s->remaining() > step_limit_ - kept - plan.n_tokens) continue;
    if (waits(s)) {
      if (!may_run(*s)) continue;  // another choice of its request was just admitted
      admits = admits && running_.size() < static_cast<size_t>(config_.max_sequences) && admit(*s);
      if (!admits) continue;
    }
    const int64_t n = chunk_size(*s, plan, step_limit_ - kept);
    if (n <= 0) continue;
    if (allocate(*s, n)) {
      add_chunk(*s, n, plan);
    } else {
      preempt(*s);  // revise() has made it longer than when it was admitted
    }
  }
}

bool Scheduler::admit(Sequence& s) {
  std::optional<int64_t> cached;
  while (!(cached = cache_.start(s))) {
    if (cache_.evict_retained()) continue;
    CHECK_INTERNAL(!running_.empty());  // a sequence fits when it is alone
    return false;
  }
  s.n_computed_ = *cached;
  s.state_ = SequenceState::kRunning;
  if (s.n_cached_prompt_ < 0) s.n_cached_prompt_ = std::min(s.n_computed_, s.n_prompt_);
  std::erase(waiting_, &s);
  insert(running_, s);
  stats_.admitted_tokens += s.n_known_;
  stats_.prefix_hit_tokens += s.n_computed_;
  ++stats_.admissions;
  stats_.prefix_hits += s.n_computed_ > 0;
  return true;
}

void Scheduler::enqueue(Sequence& s) {
  s.size_class_ = size_class(s.n_known_ - cache_.match_prefix(s));
  insert(waiting_, s);
}

int32_t Scheduler::size_class(int64_t n_lacking) { return (std::bit_width(static_cast<uint64_t>(n_lacking)) + 1) / 2; }

}  // namespace infer
