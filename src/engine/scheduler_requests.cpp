// The scheduler's checks of external input: settings, requests and drafts are checked here and nowhere else.
#include <algorithm>
#include <utility>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "src/engine/scheduler.h"

namespace infer {
namespace {

void require(bool holds, const char* what, int64_t found) {
  if (!holds) throw Error(ErrorCode::kInvalidArgument, expected_found("scheduler", what, found));
}

const SchedulerConfig& checked(const SchedulerConfig& config) {
  require(config.max_sequences >= 1, "at least 1 running sequence", config.max_sequences);
  require(config.token_budget >= config.max_sequences, "a token budget of at least one per sequence",
          config.token_budget);
  require(config.max_outputs >= config.max_sequences, "at least one output row per sequence", config.max_outputs);
  require(config.max_waiting >= 1, "a queue of at least 1 request", config.max_waiting);
  require(config.max_context >= 1, "a context of at least 1 token", config.max_context);
  require(config.n_vocab >= 1, "a vocabulary of at least 1 token", static_cast<int64_t>(config.n_vocab));
  return config;
}

}  // namespace

Scheduler::Scheduler(const SchedulerConfig& config, std::vector<CacheGroup> groups, PrefixHasher hasher)
    : config_(checked(config)), cache_(std::move(groups), config.token_budget, hasher) {}

int64_t Scheduler::max_known() const { return std::min(config_.max_context, cache_.max_tokens()); }

void Scheduler::check_request(const Request& request) const {
  const int64_t length = static_cast<int64_t>(request.prompt.size());
  require(length >= 1, "a prompt of at least 1 token", length);
  for (const TokenId token : request.prompt) {
    if (!is_token(token)) {
      throw Error(ErrorCode::kInvalidArgument,
                  expected_found("scheduler", "prompt", concat("token ids below ", config_.n_vocab), token));
    }
  }
  require(request.max_new_tokens >= -1, "max_new_tokens of -1 or more", request.max_new_tokens);
  const int64_t needed = length + (request.max_new_tokens != 0 ? 1 : 0);
  if (needed > config_.max_context) {
    throw Error(ErrorCode::kInvalidArgument,
                expected_found("scheduler", "prompt",
                               concat("at most ", grouped(config_.max_context - (needed - length)),
                                      " tokens in a context of ", grouped(config_.max_context)),
                               grouped(length)));
  }
  if (needed > max_known()) {
    throw Error(ErrorCode::kOutOfMemory,
                expected_found("scheduler", concat("prompt of ", grouped(length), " tokens"),
                               concat(blocks_for(needed), " cache blocks"), max_known() / kBlockTokens));
  }
  require(request.pooling == Pooling::kNone || (request.max_new_tokens == 0 && !request.wants_prompt_logits()),
          "no new tokens and no logits in an embedding request", request.max_new_tokens);
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
  Sampler sampler(request.sampling, config_.n_vocab, request.dry_breakers,
                  request.mask ? request.mask->clone() : nullptr);
  if (waiting_.size() >= static_cast<size_t>(config_.max_waiting)) return false;
  const RequestId id = request.id;
  future_choices_.insert(request.choices.begin(), request.choices.end());
  const int64_t rank = work_ - request.priority * kTokensPerPriority;
  auto s = std::make_unique<Sequence>(std::move(request), std::move(sampler), rank, arrivals_++, 0);
  s->max_known_ = max_known();
  if (s->request_.max_new_tokens >= 0)
    s->max_known_ = std::min(s->max_known_, s->n_prompt_ + s->request_.max_new_tokens);
  enqueue(*s);
  sequences_.emplace(id, std::move(s));
  return true;
}

void Scheduler::propose(RequestId id, std::span<const TokenId> drafts) {
  CHECK_INTERNAL(!in_flight_);
  Sequence* s = find(id);
  if (!s || s->state_ != SequenceState::kRunning || s->remaining() != 1) return;
  s->tokens_.resize(s->n_known_);
  const int64_t room = s->max_known_ - s->n_known_ - 1;  // the step samples one more token than it verifies
  drafts = drafts.first(std::min(drafts.size(), static_cast<size_t>(std::max<int64_t>(room, 0))));
  const auto invalid = std::find_if(drafts.begin(), drafts.end(), [&](TokenId token) { return !is_token(token); });
  drafts = drafts.first(static_cast<size_t>(invalid - drafts.begin()));
  drafts = drafts.first(s->sampler_.count_allowed(drafts));  // the others would be rejected
  s->tokens_.insert(s->tokens_.end(), drafts.begin(), drafts.end());
}

void Scheduler::revise(RequestId id, std::span<const TokenId> tokens, int64_t most_computed) {
  CHECK_INTERNAL(!in_flight_);
  Sequence& s = *find(id);
  CHECK_INTERNAL(s.state_ != SequenceState::kFinished && static_cast<int64_t>(tokens.size()) >= s.n_prompt_);
  const auto known = s.known_tokens();
  const int64_t n_same = std::mismatch(known.begin(), known.end(), tokens.begin(), tokens.end()).first - known.begin();
  const bool changes = n_same < s.n_known_ || most_computed < s.n_computed_;
  s.tokens_.assign(tokens.begin(), tokens.end());
  s.n_known_ = static_cast<int64_t>(tokens.size());
  if (!changes) return;
  const int64_t n_computed = s.n_computed_;
  // The last token is always computed again.
  s.n_computed_ = cache_.truncate(s, std::min({n_same, most_computed, s.n_known_ - 1}));
  if (n_computed > 0 && s.n_computed_ == 0) preempt(s);
}

void Scheduler::hold(RequestId id, bool held) {
  CHECK_INTERNAL(!in_flight_);
  find(id)->held_ = held;
}

}  // namespace infer
