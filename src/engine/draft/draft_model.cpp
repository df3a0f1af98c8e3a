#include "src/engine/draft/draft_model.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "ggml-like/error.h"
#include "src/engine/run_step.h"

namespace infer {
namespace {

// Rejecting drafts goes back at most this far; windows keep the blocks needed for that.
constexpr int kMostDepth = 64;
constexpr int kMostSteps = 64;  // per call to draft()
// The most tokens that an up-to-date sequence lacks: the token sampled by the target, and the last draft if it was
// accepted.
constexpr int kFewTokens = 2;

// The softmax probability of a token.
double probability(std::span<const float> logits, TokenId token) {
  const float most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - most);
  return std::exp(logits[static_cast<size_t>(token)] - most) / sum;
}

}  // namespace

std::vector<CacheGroup> DraftModel::cache_groups(const Model& model) {
  std::vector<CacheGroup> groups = model.cache_groups();
  for (CacheGroup& group : groups) {
    if (group.kind == CacheKind::kWindow) group.window += kMostDepth;
  }
  return groups;
}

DraftModel::DraftModel(std::unique_ptr<ModelRunner> runner, const SchedulerConfig& config,
                       std::vector<CacheGroup> groups, const StepCapacity& capacity)
    : runner_(std::move(runner)),
      n_vocab_(std::min(config.n_vocab, static_cast<size_t>(runner_->model().n_vocab()))),
      scheduler_(config, std::move(groups)),
      inputs_(capacity),
      sampler_(*runner_, n_vocab_, true) {}

int DraftModel::few_tokens() const { return predicts() ? kMostDepth + 1 : kFewTokens; }

int64_t DraftModel::computed(const Sequence& target) const {
  const Sequence* s = scheduler_.find(target.id());
  const auto found = predicted_.find(target.id());
  const int64_t confirmed = found == predicted_.end() ? INT64_MAX : found->second.confirmed;
  return s ? std::min(s->computed(), confirmed) : 0;
}

std::span<const TokenId> DraftModel::tokens_of(const Sequence& target) const {
  const std::span<const TokenId> known = target.known_tokens();
  if (!predicts()) return known;
  if (hidden_.end(target.id()) < target.known() - 1) return {};
  const int64_t first = hidden_.first(target.id());
  const auto found = predicted_.find(target.id());
  const bool goes_on = found != predicted_.end() && first < found->second.shift + computed(target);
  const int64_t shift = goes_on ? found->second.shift : first + 1;
  return known.subspan(static_cast<size_t>(std::min(shift, target.known())));
}

int64_t DraftModel::lag(const Sequence& target) const {
  const int64_t last = std::ssize(tokens_of(target)) - 1;
  return std::max<int64_t>(last - std::min(computed(target), last), 0);
}

Sequence* DraftModel::follow(const Wish& wish, bool reports) {
  const Sequence& target = *wish.sequence;
  const std::span<const TokenId> known = tokens_of(target);
  const int64_t shift = target.known() - std::ssize(known);
  if (predicts() && predicted_.contains(target.id()) && predicted_[target.id()].shift != shift) drop(target.id());
  const int64_t n_computed = computed(target);
  Sequence* s = scheduler_.find(target.id());
  const int64_t most = scheduler_.max_known();
  const bool fits = !known.empty() && std::ssize(known) + wish.depth + 1 < most;
  const bool has_tokens = std::all_of(known.begin() + (s ? s->prompt_length() : 0), known.end(),
                                      [&](TokenId token) { return static_cast<size_t>(token) < n_vocab_; });
  if (!fits || !has_tokens) {
    drop(target.id());
    return nullptr;
  }
  if (s) {
    scheduler_.revise(target.id(), known, predicts() ? n_computed : INT64_MAX);
  } else {
    Request request;
    request.id = target.id();
    request.prompt.assign(known.begin(), known.end());
    request.ignore_eog = true;
    request.sampling.temperature = 0;  // the target's sampler is used
    request.report_logits = reports;
    request.cache_salt = target.request().cache_salt;
    request.reuse_prefix = !predicts() && target.request().reuse_prefix;  // same tokens, but other hidden states
    if (!scheduler_.add(std::move(request))) return nullptr;
    s = scheduler_.find(target.id());
  }
  s->sampler() = target.sampler().with_vocabulary(n_vocab_);
  if (predicts()) {
    Predicted& predicted = predicted_[target.id()];
    predicted.shift = shift;
    predicted.confirmed = std::ssize(known);
  }
  return s;
}

// The state of one call to draft().
struct DraftModel::Round {
  std::span<const Wish> wishes;
  double least_probability;
  int32_t prompt_tokens;  // prompt tokens that may still be computed
  std::vector<std::vector<TokenId>> drafts = std::vector<std::vector<TokenId>>(wishes.size());
  std::unordered_map<RequestId, size_t> open = {};                    // wishes that want more drafts
  std::unordered_map<RequestId, std::span<const float>> logits = {};  // of the last step, if needed
  int n_drafted = 0;                                                  // in the last step
};

// Takes the results of a step. Closes wishes that are fulfilled, and those whose prompt has used up the budget.
void DraftModel::collect(Round& round, const StepPlan& plan, const SampledStep& sampled) {
  round.n_drafted = 0;
  for (size_t i = 0; i < plan.sequences.size(); ++i) {
    const ScheduledSequence& s = plan.sequences[i];
    if (s.n_tokens > few_tokens()) round.prompt_tokens = std::max(round.prompt_tokens - s.n_tokens, 0);
    if (sampled.tokens[i].empty()) continue;
    const RequestId id = s.sequence->id();
    const size_t wish = round.open.at(id);
    const TokenId token = sampled.tokens[i][0];
    ++round.n_drafted;
    const double least = round.least_probability;
    const bool probable = least <= 0 || probability(round.logits.at(id), token) >= least;
    if (probable) round.drafts[wish].push_back(token);
    if (!probable || std::ssize(round.drafts[wish]) == round.wishes[wish].depth) close(round, id);
  }
  if (round.prompt_tokens > 0) return;
  for (const Wish& wish : round.wishes) {
    const Sequence* s = scheduler_.find(wish.sequence->id());
    if (s && s->remaining() > 1) close(round, s->id());
  }
}

void DraftModel::close(Round& round, RequestId id) {
  round.open.erase(id);
  scheduler_.hold(id, true);
}

std::vector<std::vector<TokenId>> DraftModel::draft(std::span<const Wish> wishes, double least_probability,
                                                    int32_t prompt_tokens, const StepCallback& after_step) {
  Round round{wishes, least_probability, prompt_tokens};
  if (least_probability > 0)
    sampler_.on_logits([&](RequestId id, int64_t, std::span<const float> row) { round.logits[id] = row; });
  for (size_t i = 0; i < wishes.size(); ++i) {
    if (follow(wishes[i], least_probability > 0)) round.open.emplace(wishes[i].sequence->id(), i);
  }
  for (const auto list : {scheduler_.running(), scheduler_.waiting()}) {
    for (const Sequence* s : list) scheduler_.hold(s->id(), !round.open.contains(s->id()));
  }
  for (int n_steps = 0; !round.open.empty() && n_steps < kMostSteps; ++n_steps) {
    const StepPlan plan = scheduler_.schedule(std::max(round.prompt_tokens, 1));
    if (plan.empty()) break;
    run(plan);
    const SampledStep sampled = sampler_.sample(plan);
    for (const SampledStep::Failure& failure : sampled.failures) {
      scheduler_.finish(failure.id, FinishReason::kError);
      round.open.erase(failure.id);
    }
    scheduler_.commit(plan, sampled.tokens);
    for (const SampledStep::Failure& failure : sampled.failures) scheduler_.take(failure.id);
    collect(round, plan, sampled);
    after_step(plan.n_tokens, round.n_drafted);
    // Once no open wish has drafts, the remaining prompts wait for the next call.
    const bool some_draft = std::any_of(round.open.begin(), round.open.end(),
                                        [&](const auto& entry) { return !round.drafts[entry.second].empty(); });
    if (!some_draft && round.n_drafted > 0) break;
  }
  return std::move(round.drafts);
}

void DraftModel::run(const StepPlan& plan) {
  StepOptions options{.n_deciding = sampler_.n_deciding(plan)};
  if (predicts()) {
    options.hidden = [this](const Sequence& s, int64_t position) -> std::span<const float> {
      const Predicted& predicted = predicted_.at(s.id());
      if (position >= predicted.confirmed) return predicted.own;
      return hidden_.at(s.id(), predicted.shift - 1 + position);
    };
  }
  const std::vector<int> outputs = run_step(*runner_, inputs_, plan, options);
  if (!predicts()) return;
  size_t row = 0;
  for (const ScheduledSequence& s : plan.sequences) {
    row += static_cast<size_t>(s.n_tokens);
    if (outputs[row - 1] < 0) continue;
    const std::span<const float> state = runner_->state(outputs[row - 1]);
    predicted_.at(s.sequence->id()).own.assign(state.begin(), state.end());
  }
}

void DraftModel::see(const StepPlan& plan, const ModelRunner& target, std::span<const int> outputs) {
  size_t row = 0;
  for (const ScheduledSequence& s : plan.sequences) {
    for (int32_t i = 0; i < s.n_tokens; ++i, ++row) {
      const int64_t position = s.first_position + i;
      if (position < s.sequence->computed()) hidden_.add(s.sequence->id(), position, target.state(outputs[row]));
    }
  }
}

void DraftModel::drop(RequestId id) {
  predicted_.erase(id);
  scheduler_.finish(id, FinishReason::kCancelled);
  if (scheduler_.find(id)) scheduler_.take(id);
}

void DraftModel::end(RequestId id) {
  drop(id);
  hidden_.forget(id);
}

void DraftModel::reset() {
  scheduler_.reset();
  predicted_.clear();
  hidden_.clear();
}

}  // namespace infer
