#include "src/engine/scheduler.h"

#include <algorithm>
#include <utility>

#include "ggml-like/error.h"
#include "ggml-like/step_inputs.h"  // kMaxCacheGroups

namespace infer {
namespace {

void require(bool holds, const char* what, int64_t found) {
  if (!holds) throw Error(ErrorCode::kInvalidArgument, concat("[scheduler] expected ", what, ", found ", found));
}

static_assert(kMaxCacheGroups == 4);  // as a message below says

bool contains(const std::vector<TokenId>& list, TokenId token) {
  return std::find(list.begin(), list.end(), token) != list.end();
}

}  // namespace

Scheduler::Scheduler(const SchedulerConfig& config, std::vector<CacheGroup> groups, PrefixHasher hasher)
    : config_(config), groups_(std::move(groups)), hasher_(hasher) {
  require(config.max_sequences >= 1, "at least 1 running sequence", config.max_sequences);
  require(config.token_budget >= config.max_sequences, "a token budget of at least one per sequence",
          config.token_budget);
  require(config.max_outputs >= config.max_sequences, "at least one output row per sequence", config.max_outputs);
  require(config.max_waiting >= 1, "a queue of at least 1 request", config.max_waiting);
  require(config.max_context >= 1, "a context of at least 1 token", config.max_context);
  require(config.n_vocab >= 1, "a vocabulary of at least 1 token", static_cast<int64_t>(config.n_vocab));
  const int64_t n_groups = static_cast<int64_t>(groups_.size());
  require(n_groups >= 1 && n_groups <= kMaxCacheGroups, "1 to 4 cache groups", n_groups);
  for (const CacheGroup& group : groups_) {
    if (group.kind != CacheKind::kFull) {
      throw Error(ErrorCode::kUnsupported,
                  concat("[scheduler] cache group ", pools_.size(), ": expected kind full, found ",
                         cache_kind_name(group.kind), ", which is not implemented"));
    }
    pools_.emplace_back(group.n_blocks);
  }
}

void Scheduler::reset() {
  std::vector<BlockPool> pools;
  for (const CacheGroup& group : groups_) pools.emplace_back(group.n_blocks);
  pools_.swap(pools);
  waiting_.clear();
  running_.clear();
  future_choices_.clear();
  held_.clear();
  sequences_.clear();
  in_flight_ = false;
}

int64_t Scheduler::max_known() const {
  int64_t limit = config_.max_context;
  for (const CacheGroup& group : groups_) limit = std::min(limit, int64_t{group.n_blocks} * kBlockTokens);
  return limit;
}

void Scheduler::check_request(const Request& request) const {
  const int64_t length = static_cast<int64_t>(request.prompt.size());
  require(length >= 1, "a prompt of at least 1 token", length);
  for (const TokenId token : request.prompt) {
    if (token < 0 || static_cast<size_t>(token) >= config_.n_vocab) {
      throw Error(ErrorCode::kInvalidArgument,
                  concat("[scheduler] prompt: expected token ids below ", config_.n_vocab, ", found ", token));
    }
  }
  require(request.max_new_tokens >= -1, "max_new_tokens of -1 or more", request.max_new_tokens);
  const int64_t needed = length + (request.max_new_tokens != 0 ? 1 : 0);
  if (needed > config_.max_context) {
    throw Error(ErrorCode::kInvalidArgument,
                concat("[scheduler] prompt of ", length, " tokens: expected at most ",
                       config_.max_context - (needed - length), " in a context of ", config_.max_context));
  }
  if (needed > max_known()) {
    throw Error(ErrorCode::kOutOfMemory, concat("[scheduler] prompt of ", length, " tokens needs ", blocks_for(needed),
                                                " cache blocks, found ", max_known() / kBlockTokens, " in all"));
  }
  require(request.pooling == Pooling::kNone || (request.max_new_tokens == 0 && !request.wants_prompt_logits()),
          "no new tokens and no logits of a request for a vector", request.max_new_tokens);
  std::unordered_set<RequestId> ids;
  const auto check_id = [&](RequestId id) {
    const bool unused = !sequences_.contains(id) && !future_choices_.contains(id) && ids.insert(id).second;
    require(unused, "an unused request id", static_cast<int64_t>(id));
  };
  check_id(request.id);
  for (const RequestId id : request.choices) check_id(id);
  require(request.choices.empty() || request.max_new_tokens != 0, "no choices of a request without new tokens",
          static_cast<int64_t>(request.choices.size()));
}

bool Scheduler::add(Request request) {
  check_request(request);
  Sampler sampler(request.sampling, config_.n_vocab, request.dry_breakers);
  if (waiting_.size() >= static_cast<size_t>(config_.max_waiting)) return false;
  const RequestId id = request.id;
  future_choices_.insert(request.choices.begin(), request.choices.end());
  const int64_t rank = work_ - request.priority * kTokensPerPriority;
  auto s = std::make_unique<Sequence>(std::move(request), std::move(sampler), rank, arrivals_++, 0, groups_.size());
  s->max_known_ = max_known();
  if (s->request_.max_new_tokens >= 0)
    s->max_known_ = std::min(s->max_known_, s->n_prompt_ + s->request_.max_new_tokens);
  enqueue(*s);
  sequences_.emplace(id, std::move(s));
  return true;
}

Sequence* Scheduler::find(RequestId id) {
  const auto found = sequences_.find(id);
  return found == sequences_.end() ? nullptr : found->second.get();
}

void Scheduler::propose(RequestId id, std::span<const TokenId> drafts) {
  CHECK_INTERNAL(!in_flight_);
  Sequence* s = find(id);
  if (!s || s->state_ != SequenceState::kRunning || s->remaining() != 1) return;
  s->tokens_.resize(s->n_known_);
  const int64_t room = s->max_known_ - s->n_known_ - 1;  // the step draws one token more than it verifies
  for (int64_t i = 0; i < std::min<int64_t>(room, static_cast<int64_t>(drafts.size())); ++i) {
    if (drafts[i] < 0 || static_cast<size_t>(drafts[i]) >= config_.n_vocab) break;
    s->tokens_.push_back(drafts[i]);
  }
}

StepPlan Scheduler::schedule(int32_t prompt_budget) {
  CHECK_INTERNAL(!in_flight_ && prompt_budget >= 1);
  StepPlan plan;
  step_limit_ = config_.token_budget;
  schedule_decodes(plan);
  if (!plan.empty()) step_limit_ = plan.n_tokens + std::min(prompt_budget, config_.token_budget - plan.n_tokens);
  schedule_prompts(plan);
  schedule_drafts(plan);
  work_ += plan.n_tokens;
  in_flight_ = !plan.empty();
  return plan;
}

void Scheduler::schedule_decodes(StepPlan& plan) {
  // In rank, so that a victim, the last in rank, has never been scheduled already.
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence& s = *running_[i];
    if (s.remaining() != 1) continue;
    bool reserved = reserve(s, 1, plan);
    while (!reserved && (running_.back() != &s || !held_.empty())) {
      if (!drop_oldest_held()) preempt(*running_.back());
      reserved = reserve(s, 1, plan);
    }
    if (!reserved) {
      CHECK_INTERNAL(running_.size() > 1);  // alone, a sequence fits
      preempt(s);
      return;
    }
    add_chunk(s, plan, step_limit_);
  }
}

void Scheduler::schedule_drafts(StepPlan& plan) {
  for (ScheduledSequence& scheduled : plan.sequences) {
    Sequence& s = *scheduled.sequence;
    int64_t n = std::min<int64_t>({static_cast<int64_t>(s.drafts().size()), config_.token_budget - plan.n_tokens,
                                   config_.max_outputs - plan.n_outputs});
    while (n > 0 && !reserve(s, 1 + n, plan)) --n;  // drafts never preempt anyone
    s.tokens_.resize(s.n_known_ + n);
    scheduled.n_drafts = static_cast<int32_t>(n);
    scheduled.n_tokens += scheduled.n_drafts;
    plan.n_tokens += scheduled.n_drafts;
    plan.n_outputs += scheduled.n_drafts;
  }
}

void Scheduler::add_chunk(Sequence& s, StepPlan& plan, int32_t limit) {
  const int64_t outputs = config_.max_outputs - plan.n_outputs;
  int64_t n = std::min<int64_t>(s.remaining(), limit - plan.n_tokens);
  if (s.request_.wants_prompt_logits()) n = std::min(n, outputs);
  if (n == s.remaining() && s.wants_tokens() && outputs == 0) --n;
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

bool Scheduler::reserve(Sequence& s, int64_t n, StepPlan& plan) {
  const int64_t needed = blocks_for(s.n_computed_ + n);
  const size_t first = static_cast<size_t>(s.n_computed_ / kBlockTokens);  // the first block written
  auto shared = [&](size_t g) {
    const auto& blocks = s.tables_[g].blocks;
    return first < blocks.size() && pools_[g].references(blocks[first]) > 1;
  };
  for (size_t g = 0; g < pools_.size(); ++g) {
    const int64_t missing = std::max<int64_t>(0, needed - static_cast<int64_t>(s.tables_[g].blocks.size()));
    if (pools_[g].available() < missing + (shared(g) ? 1 : 0)) return false;
  }
  for (size_t g = 0; g < pools_.size(); ++g) {
    auto& blocks = s.tables_[g].blocks;
    if (shared(g)) {
      const BlockId copy = pools_[g].allocate().value();
      plan.copies.push_back({static_cast<int32_t>(g), blocks[first], copy});
      pools_[g].release(blocks[first]);
      blocks[first] = copy;
    } else if (first < blocks.size()) {
      pools_[g].make_writable(blocks[first]);
    }
    while (static_cast<int64_t>(blocks.size()) < needed) blocks.push_back(pools_[g].allocate().value());
    CHECK_INTERNAL(pools_[g].writable(blocks[first]));
  }
  return true;
}

void Scheduler::preempt(Sequence& s) {
  std::erase(running_, &s);
  release_blocks(s);
  s.tokens_.resize(s.n_known_);
  s.n_computed_ = 0;
  s.state_ = SequenceState::kWaiting;
  ++s.n_preemptions_;
  ++stats_.preemptions;
  enqueue(s);
}

void Scheduler::release_blocks(Sequence& s) {
  for (size_t g = 0; g < pools_.size(); ++g) release(g, s.tables_[g]);
}

void Scheduler::release(size_t group, Sequence::Table& table) {
  // Last first: of a text in the cache the end is evicted before the beginning it depends on.
  for (size_t i = table.blocks.size(); i-- > 0;) pools_[group].release(table.blocks[i]);
  table.blocks.clear();
  table.n_published = 0;
}

void Scheduler::commit(const StepPlan& plan, std::span<const std::vector<TokenId>> sampled, std::span<Choice> choices) {
  CHECK_INTERNAL(in_flight_ && sampled.size() == plan.sequences.size());
  in_flight_ = false;
  ++stats_.steps;
  for (size_t i = 0; i < sampled.size(); ++i) {
    const ScheduledSequence& scheduled = plan.sequences[i];
    Sequence& s = *scheduled.sequence;
    if (s.state_ != SequenceState::kRunning) {
      s.tokens_.resize(s.n_known_);
      continue;
    }
    const int64_t before = s.n_computed_;
    FinishReason reason = FinishReason::kNone;
    CHECK_INTERNAL(sampled[i].empty() != scheduled.samples);
    if (scheduled.samples) {
      const size_t accepted = sampled[i].size() - 1;
      CHECK_INTERNAL(accepted <= static_cast<size_t>(scheduled.n_drafts) &&
                     std::equal(sampled[i].begin(), sampled[i].end() - 1, s.drafts().begin()));
      s.n_computed_ = s.n_known_ + static_cast<int64_t>(accepted);
      stats_.proposed_drafts += scheduled.n_drafts;
      stats_.accepted_drafts += static_cast<int64_t>(accepted);
      reason = append(s, sampled[i]);
    } else {
      s.n_computed_ += scheduled.n_tokens;
      if (s.remaining() == 0) reason = FinishReason::kMaxTokens;
    }
    stats_.computed_tokens += s.n_computed_ - before;
    publish_full_blocks(s);
    for (Choice& choice : choices) {
      if (choice.parent != s.id() || future_choices_.erase(choice.id) == 0) continue;
      Request request = s.request_;
      request.id = choice.id;
      request.conversation = 0;  // one answer goes on with it
      request.logits_from = -1;
      auto child = std::make_unique<Sequence>(std::move(request), std::move(choice.sampler), s.rank_, s.arrival_,
                                              choice.index, groups_.size());
      add_fork(s, std::move(child), s.n_prompt_, choice.first, running_.size() - (reason != FinishReason::kNone));
    }
    if (scheduled.samples) s.request_.choices.clear();
    if (reason != FinishReason::kNone) {
      finish(s.id(), reason);
    } else {
      trim_tables(s);
    }
  }
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

void Scheduler::extend_keys(Sequence& s, int64_t n_blocks) {
  for (size_t g = 0; g < pools_.size(); ++g) {
    auto& keys = s.tables_[g].keys;
    while (static_cast<int64_t>(keys.size()) < n_blocks) {
      const PrefixKey previous = keys.empty() ? hasher_.root(static_cast<int>(g), s.request_.cache_salt) : keys.back();
      keys.push_back(hasher_.next(previous, s.known_tokens().subspan(keys.size() * kBlockTokens, kBlockTokens)));
    }
  }
}

void Scheduler::publish_full_blocks(Sequence& s) {
  if (!s.request_.reuse_prefix) return;
  // The text may have ended before tokens that were computed as drafts.
  const int64_t n_full = std::min(s.n_computed_, s.n_known_) / kBlockTokens;
  extend_keys(s, n_full);
  for (size_t g = 0; g < pools_.size(); ++g) {
    auto& table = s.tables_[g];
    for (; static_cast<int64_t>(table.n_published) < n_full; ++table.n_published) {
      BlockId& block = table.blocks[table.n_published];
      block = pools_[g].publish(block, table.keys[table.n_published]);
    }
  }
}

void Scheduler::trim_tables(Sequence& s) {
  for (size_t g = 0; g < pools_.size(); ++g) {
    auto& blocks = s.tables_[g].blocks;
    while (static_cast<int64_t>(blocks.size()) > blocks_for(s.n_known_)) {
      pools_[g].release(blocks.back());
      blocks.pop_back();
    }
  }
}

void Scheduler::fork(RequestId parent_id, RequestId child_id, Sampler sampler, int64_t n_shared, TokenId next) {
  CHECK_INTERNAL(!in_flight_);
  const Sequence* parent = find(parent_id);
  CHECK_INTERNAL(parent && n_shared >= parent->n_prompt_ && n_shared <= parent->n_known_ &&
                 n_shared < parent->max_known_);
  require(!sequences_.contains(child_id) && !future_choices_.contains(child_id), "an unused request id",
          static_cast<int64_t>(child_id));
  Request request = parent->request_;
  request.id = child_id;
  auto child =
      std::make_unique<Sequence>(std::move(request), std::move(sampler), parent->rank_, arrivals_++, 0, groups_.size());
  add_fork(*parent, std::move(child), n_shared, next, running_.size());
}

void Scheduler::add_fork(const Sequence& parent, std::unique_ptr<Sequence> child, int64_t n_shared, TokenId next,
                         size_t n_running) {
  Sequence& s = *child;
  sequences_.emplace(s.id(), std::move(child));
  s.request_.choices.clear();
  s.tokens_.assign(parent.tokens_.begin(), parent.tokens_.begin() + n_shared);
  s.n_known_ = n_shared;
  s.max_known_ = parent.max_known_;
  const bool share = parent.state_ == SequenceState::kRunning && n_shared <= parent.n_computed_ &&
                     n_running < static_cast<size_t>(config_.max_sequences) && may_run(s);
  if (share) {
    for (size_t g = 0; g < pools_.size(); ++g) {
      const auto& from = parent.tables_[g];
      auto& to = s.tables_[g];
      to.blocks.assign(from.blocks.begin(), from.blocks.begin() + blocks_for(n_shared));
      for (const BlockId block : to.blocks) pools_[g].retain(block);
      to.n_published = std::min<size_t>(from.n_published, n_shared / kBlockTokens);
      to.keys.assign(from.keys.begin(), from.keys.begin() + to.n_published);
    }
    s.n_computed_ = n_shared;
    s.n_cached_prompt_ = s.n_prompt_;
    s.state_ = SequenceState::kRunning;
  }
  if (share) insert(running_, s);
  else enqueue(s);
  const FinishReason reason = append(s, std::span(&next, 1));
  if (reason != FinishReason::kNone) finish(s.id(), reason);
}

void Scheduler::finish(RequestId id, FinishReason reason) {
  if (future_choices_.erase(id) > 0) return;
  Sequence* s = find(id);
  if (!s || s->state_ == SequenceState::kFinished) return;
  for (const RequestId choice : s->request_.choices) future_choices_.erase(choice);
  std::erase(s->state_ == SequenceState::kRunning ? running_ : waiting_, s);
  const bool keeps = s->request_.conversation != 0 && s->request_.reuse_prefix && s->n_computed_ > 0;
  if (keeps) {
    hold(*s);
  } else {
    release_blocks(*s);
  }
  if (!in_flight_) s->tokens_.resize(s->n_known_);  // a step in flight may still read its drafts
  s->state_ = SequenceState::kFinished;
  s->finish_reason_ = reason;
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
