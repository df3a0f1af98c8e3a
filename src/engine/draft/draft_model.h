// A smaller model that guesses the target's next tokens. Every target sequence that wants drafts has a sequence here
// with the same tokens. The draft model has its own cache, scheduler and steps, so these sequences are batched, share
// prefixes, and are preempted and recomputed like the target's. Rejected drafts are removed before the next call.
// A prediction layer of the target (ModelPart) computes a token from the target's hidden state at the token before, so
// its sequence begins after the first known state. While drafting it continues from its own states; what it computed
// from those is removed too.
// Drafts are sampled with the target's own sampler and noise, so that they agree as often as possible.
// One thread.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "src/engine/draft/hidden_states.h"
#include "src/engine/model_runner.h"
#include "src/engine/scheduler.h"
#include "src/engine/step_sampling.h"

namespace infer {

class DraftModel {
 public:
  // Windows are larger than the model's by the drafts that may be rejected.
  static std::vector<CacheGroup> cache_groups(const Model& model);

  // `groups` are those of cache_groups(), with the runner's block counts; the runner was made for `capacity`. `config`
  // is the target scheduler's, except that max_context is the draft's own. The two vocabularies may differ in length by
  // unused tokens.
  DraftModel(std::unique_ptr<ModelRunner> runner, const SchedulerConfig& config, std::vector<CacheGroup> groups,
             const StepCapacity& capacity);

  struct Wish {
    const Sequence* sequence = nullptr;  // of the target; all its known tokens but the last are computed
    int depth = 0;                       // maximum number of drafts, at least 1
  };
  // Called after each step of the draft model with the rows it computed, prompts included, and the number of sequences
  // that got a draft.
  using StepCallback = std::function<void(int rows, int drafts)>;
  // The drafts for each wish; fewer or none where the draft model has not caught up with the target, or its cache is
  // full. A sequence's drafts end before the first token that the draft model finds less probable than
  // `least_probability`. Computes at most about `prompt_tokens` prompt tokens; the next call continues from there.
  std::vector<std::vector<TokenId>> draft(std::span<const Wish> wishes, double least_probability, int32_t prompt_tokens,
                                          const StepCallback& after_step);
  // How many tokens the draft model must compute before it can draft for the sequence.
  int64_t lag(const Sequence& target) const;
  // The most tokens that a step computes for one more draft of a sequence that has not fallen behind.
  int few_tokens() const;

  // Whether it needs see(): true for a prediction layer.
  bool predicts() const { return runner_->model().config().part == ModelPart::kPrediction; }
  // After Scheduler::commit() of a target step: takes its hidden states. outputs[i] is the output of row i.
  void see(const StepPlan& plan, const ModelRunner& target, std::span<const int> outputs);

  // The target's sequence has ended or needs no drafts for now. Ignores unknown ids.
  void end(RequestId id);
  void reset();

  ModelRunner& runner() { return *runner_; }
  const ModelRunner& runner() const { return *runner_; }
  const Scheduler& scheduler() const { return scheduler_; }

 private:
  struct Round;
  // What a prediction layer keeps for each sequence.
  struct Predicted {
    int64_t shift = 0;       // target tokens before the first of this sequence, at least one
    int64_t confirmed = 0;   // tokens that have hidden states from the target
    std::vector<float> own;  // its own hidden state at its last token, [n_embd]
  };
  // The target's known tokens that the draft's sequence has or would have; empty if hidden states are missing.
  std::span<const TokenId> tokens_of(const Sequence& target) const;
  // How many of those tokens are computed and will not be removed.
  int64_t computed(const Sequence& target) const;
  void run(const StepPlan& plan);
  void drop(RequestId id);
  // Brings the draft's sequence up to the target's tokens; null if they do not fit in the draft's context.
  Sequence* follow(const Wish& wish, bool reports);
  void collect(Round& round, const StepPlan& plan, const SampledStep& sampled);
  void close(Round& round, RequestId id);

  std::unique_ptr<ModelRunner> runner_;
  const size_t n_vocab_;  // common to both models
  Scheduler scheduler_;
  StepInputs inputs_;
  StepSampler sampler_;
  HiddenStates hidden_;
  std::unordered_map<RequestId, Predicted> predicted_;
};

}  // namespace infer
