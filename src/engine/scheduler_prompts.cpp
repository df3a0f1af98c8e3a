// The scheduler's part for prompts: who waits, who is admitted, from what in the cache, and how prompts share a step.
#include <algorithm>
#include <bit>
#include <utility>

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
    if (s->remaining() > 1) result.push_back(s);
  }
  if (running_.size() == static_cast<size_t>(config_.max_sequences)) return result;
  for (Sequence* s : waiting_) {
    if (may_run(*s)) result.push_back(s);
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
  // Where the first in rank finds no blocks, nobody behind it takes any.
  if (first && waits(first) && !admit(*first, plan)) {
    std::erase_if(queue, waits);
    first = first_in_rank();
  }
  if (!first) return;
  std::stable_sort(queue.begin(), queue.end(), [](const Sequence* a, const Sequence* b) {
    return a->size_class_ != b->size_class_ ? a->size_class_ < b->size_class_ : a->before(*b);
  });
  const int32_t left = step_limit_ - plan.n_tokens;
  const int32_t quarter = left >= 4 ? left / 4 : stats_.steps % 4 == 0;
  int32_t kept = static_cast<int32_t>(std::min<int64_t>(quarter, first->remaining()));
  bool admits = true;
  for (Sequence* s : queue) {
    if (s == first) kept = 0;
    if (plan.n_tokens >= step_limit_ - kept) continue;
    if (waits(s)) {
      if (!may_run(*s)) continue;  // another choice of its request was admitted just now
      admits = admits && running_.size() < static_cast<size_t>(config_.max_sequences) && admit(*s, plan);
      if (!admits) continue;
    }
    add_chunk(*s, plan, step_limit_ - kept);
  }
}

bool Scheduler::admit(Sequence& s, StepPlan& plan) {
  while (!start(s, plan)) {
    if (drop_oldest_held()) continue;
    CHECK_INTERNAL(!running_.empty());  // alone, a sequence fits
    return false;
  }
  std::erase(waiting_, &s);
  insert(running_, s);
  return true;
}

void Scheduler::enqueue(Sequence& s) {
  const int64_t n_cached = s.request_.takes_cached_blocks() ? static_cast<int64_t>(find_cached(s)[0].size()) : 0;
  const auto lacking = static_cast<uint64_t>(s.n_known_ - n_cached * kBlockTokens);
  s.size_class_ = (std::bit_width(lacking) + 1) / 2;  // lengths within a factor of four count as alike
  insert(waiting_, s);
}

int64_t Scheduler::growing(size_t group) const {
  return std::count_if(running_.begin(), running_.end(), [&](const Sequence* s) {
    return static_cast<int64_t>(s->tables_[group].blocks.size()) < blocks_for(s->max_known_);
  });
}

std::vector<std::vector<BlockId>> Scheduler::find_cached(Sequence& s) {
  // At least one known token is left to compute, so that there are logits to go on from.
  int64_t n_hit = (s.n_known_ - 1) / kBlockTokens;
  extend_keys(s, n_hit);
  std::vector<std::vector<BlockId>> hits(pools_.size());
  for (size_t g = 0; g < pools_.size(); ++g) {
    hits[g] = pools_[g].find_prefix(std::span(s.tables_[g].keys).first(n_hit));
    n_hit = static_cast<int64_t>(hits[g].size());
  }
  for (auto& blocks : hits) blocks.resize(n_hit);
  return hits;
}

bool Scheduler::start(Sequence& s, StepPlan& plan) {
  const bool look_up = s.request_.takes_cached_blocks();
  std::vector<std::vector<BlockId>> hits(pools_.size());
  if (look_up) hits = find_cached(s);
  const int64_t n_hit = static_cast<int64_t>(hits[0].size());
  if (const auto held = look_up ? find_held(s) : held_.end(); held != held_.end()) {
    const auto known = s.known_tokens().first(s.n_known_ - 1);
    const auto end = std::mismatch(known.begin(), known.end(), held->tokens.begin(), held->tokens.end()).first;
    const int64_t n_held = end - known.begin();
    if (n_held > n_hit * kBlockTokens) return start_from_held(s, held, n_held, plan);
  }
  for (size_t g = 0; g < pools_.size(); ++g) {
    int64_t available = pools_[g].available();
    for (const BlockId block : hits[g]) available -= pools_[g].references(block) == 0;
    if (available < blocks_for(s.n_known_) - n_hit + growing(g)) return false;
  }
  for (size_t g = 0; g < pools_.size(); ++g) {
    for (const BlockId block : hits[g]) pools_[g].retain(block);
    auto& table = s.tables_[g];
    table.blocks = std::move(hits[g]);
    table.n_published = table.blocks.size();
    while (static_cast<int64_t>(table.blocks.size()) < blocks_for(s.n_known_)) {
      table.blocks.push_back(pools_[g].allocate().value());
    }
  }
  s.n_computed_ = n_hit * kBlockTokens;
  set_running(s);
  return true;
}

std::vector<Scheduler::Held>::iterator Scheduler::find_held(const Sequence& s) {
  if (s.request_.conversation == 0) return held_.end();
  return std::find_if(held_.begin(), held_.end(), [&](const Held& held) {
    return held.conversation == s.request_.conversation && held.cache_salt == s.request_.cache_salt;
  });
}

bool Scheduler::start_from_held(Sequence& s, std::vector<Held>::iterator held, int64_t n_held, StepPlan& plan) {
  const size_t n_kept = static_cast<size_t>(blocks_for(n_held));
  const size_t first = static_cast<size_t>(n_held / kBlockTokens);  // the first block written
  for (size_t g = 0; g < pools_.size(); ++g) {
    const auto& blocks = held->tables[g].blocks;
    int64_t available = pools_[g].available();
    for (size_t i = n_kept; i < blocks.size(); ++i) available += pools_[g].references(blocks[i]) == 1;
    int64_t needed = blocks_for(s.n_known_) - static_cast<int64_t>(n_kept) + growing(g);
    if (first < n_kept && pools_[g].references(blocks[first]) > 1) ++needed;  // a copy
    if (available < needed) return false;
  }
  for (size_t g = 0; g < pools_.size(); ++g) {
    auto& blocks = held->tables[g].blocks;
    for (; blocks.size() > n_kept; blocks.pop_back()) pools_[g].release(blocks.back());
    s.tables_[g].blocks = std::move(blocks);
    s.tables_[g].n_published = std::min<size_t>(held->tables[g].n_published, first);
  }
  held_.erase(held);
  s.n_computed_ = n_held;
  const bool reserved = reserve(s, s.n_known_ - n_held, plan);
  CHECK_INTERNAL(reserved);
  set_running(s);
  return true;
}

void Scheduler::set_running(Sequence& s) {
  s.state_ = SequenceState::kRunning;
  if (s.n_cached_prompt_ < 0) s.n_cached_prompt_ = std::min(s.n_computed_, s.n_prompt_);
  stats_.admitted_tokens += s.n_known_;
  stats_.prefix_hit_tokens += s.n_computed_;
  ++stats_.admissions;
  stats_.prefix_hits += s.n_computed_ > 0;
}

void Scheduler::hold(Sequence& s) {
  if (const auto before = find_held(s); before != held_.end()) drop(before);
  // The text may have ended before tokens that were computed as drafts.
  const int64_t n = std::min(s.n_computed_, s.n_known_);
  Held held{s.request_.conversation, s.request_.cache_salt, {s.tokens_.begin(), s.tokens_.begin() + n}, {}};
  for (size_t g = 0; g < pools_.size(); ++g) {
    auto& table = s.tables_[g];
    for (; static_cast<int64_t>(table.blocks.size()) > blocks_for(n); table.blocks.pop_back()) {
      pools_[g].release(table.blocks.back());
    }
    held.tables.push_back(std::exchange(table, {}));
  }
  held_.push_back(std::move(held));
}

void Scheduler::drop(std::vector<Held>::iterator held) {
  for (size_t g = 0; g < pools_.size(); ++g) release(g, held->tables[g]);
  held_.erase(held);
}

void Scheduler::forget(uint64_t conversation) {
  CHECK_INTERNAL(!in_flight_);
  for (auto held = held_.begin(); held != held_.end();) {
    held->conversation == conversation ? drop(held), held = held_.begin() : ++held;
  }
}

bool Scheduler::drop_oldest_held() {
  if (held_.empty()) return false;
  drop(held_.begin());
  return true;
}

}  // namespace infer
