#include "src/engine/draft/draft_model.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "ggml-like/error.h"
#include "src/engine/run_step.h"

namespace infer {
namespace {

// A rejected draft goes back this far at most; windows keep what its tokens see.
constexpr int kMostDepth = 64;

// Of a token in the softmax of a row.
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

int64_t DraftModel::lag(const Sequence& target) const {
  const Sequence* s = scheduler_.find(target.id());
  return target.known() - 1 - (s ? std::min(s->computed(), target.known() - 1) : 0);
}

Sequence* DraftModel::follow(const Wish& wish, bool reports) {
  const Sequence& target = *wish.sequence;
  const std::span<const TokenId> known = target.known_tokens();
  Sequence* s = scheduler_.find(target.id());
  const int64_t most = scheduler_.max_known();
  const bool fits = target.known() + wish.depth + 1 < most;
  const bool has_tokens = std::all_of(known.begin() + (s ? s->prompt_length() : 0), known.end(),
                                      [&](TokenId token) { return static_cast<size_t>(token) < n_vocab_; });
  if (!fits || !has_tokens) {
    end(target.id());
    return nullptr;
  }
  if (s) {
    scheduler_.revise(target.id(), known);
  } else {
    Request request;
    request.id = target.id();
    request.prompt.assign(known.begin(), known.end());
    request.ignore_eog = true;
    request.sampling.temperature = 0;  // its sampler is the target's
    request.report_logits = reports;
    request.cache_salt = target.request().cache_salt;
    request.reuse_prefix = target.request().reuse_prefix;
    if (!scheduler_.add(std::move(request))) return nullptr;
    s = scheduler_.find(target.id());
  }
  s->sampler() = target.sampler().with_vocabulary(n_vocab_);
  return s;
}

std::vector<std::vector<TokenId>> DraftModel::draft(std::span<const Wish> wishes, double least_probability,
                                                    const StepCallback& after_step) {
  std::vector<std::vector<TokenId>> drafts(wishes.size());
  std::unordered_map<RequestId, size_t> open;  // wishes that want more
  std::unordered_map<RequestId, std::span<const float>> rows;
  if (least_probability > 0)
    sampler_.on_logits([&](RequestId id, int64_t, std::span<const float> row) { rows[id] = row; });
  for (size_t i = 0; i < wishes.size(); ++i) {
    if (follow(wishes[i], least_probability > 0)) open.emplace(wishes[i].sequence->id(), i);
  }
  for (const auto list : {scheduler_.running(), scheduler_.waiting()}) {
    for (const Sequence* s : list) scheduler_.hold(s->id(), !open.contains(s->id()));
  }
  for (int n_steps = 0; !open.empty() && n_steps < kMostDepth; ++n_steps) {
    const StepPlan plan = scheduler_.schedule();
    if (plan.empty()) break;
    run_step(*runner_, inputs_, plan, sampler_.n_deciding(plan));
    const SampledStep sampled = sampler_.sample(plan);
    for (const SampledStep::Failure& failure : sampled.failures) {
      scheduler_.finish(failure.id, FinishReason::kError);
      open.erase(failure.id);
    }
    scheduler_.commit(plan, sampled.tokens);
    for (const SampledStep::Failure& failure : sampled.failures) scheduler_.take(failure.id);
    int n_drafts = 0;
    bool waits = false;  // for sequences that draft, not for prompts
    for (size_t i = 0; i < plan.sequences.size(); ++i) {
      if (sampled.tokens[i].empty()) continue;
      const RequestId id = plan.sequences[i].sequence->id();
      const size_t wish = open.at(id);
      const TokenId token = sampled.tokens[i][0];
      ++n_drafts;
      const bool probable = least_probability <= 0 || probability(rows.at(id), token) >= least_probability;
      if (probable) drafts[wish].push_back(token);
      if (probable && std::ssize(drafts[wish]) < wishes[wish].depth) {
        waits = true;
        continue;
      }
      open.erase(id);
      scheduler_.hold(id, true);
    }
    after_step(plan.n_tokens, n_drafts);
    if (!waits && n_drafts > 0) break;
  }
  return drafts;
}

void DraftModel::end(RequestId id) {
  scheduler_.finish(id, FinishReason::kCancelled);
  if (scheduler_.find(id)) scheduler_.take(id);
}

}  // namespace infer
