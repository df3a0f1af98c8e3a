// A smaller model that guesses what the target will write. Every target sequence that wants drafts has one here of the
// same tokens, with a cache, a scheduler and steps of its own: they are batched, share prefixes, are preempted and
// computed again like the target's. What the target rejects is cut off before the next drafts.
// A prediction layer of the target (ModelPart) computes a token from the target's hidden state of the token before, so
// its sequence begins with the token behind the first known state. For its own drafts it goes on from its own states;
// what it has computed from those is cut off too.
// Drafts are sampled with the target's own sampler and noise, so that the two agree as often as they can.
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
  // The groups of a draft's layers: windows are larger by what a rejected draft goes back.
  static std::vector<CacheGroup> cache_groups(const Model& model);

  // `groups` are those of cache_groups(), with the runner's blocks; the runner was made for `capacity`. `config` is
  // that of the target's scheduler but for max_context, the draft's own. A draft's row of logits may be longer or
  // shorter than the target's by unused tokens.
  DraftModel(std::unique_ptr<ModelRunner> runner, const SchedulerConfig& config, std::vector<CacheGroup> groups,
             const StepCapacity& capacity);

  struct Wish {
    const Sequence* sequence = nullptr;  // of the target, all of whose known tokens but the last are computed
    int depth = 0;                       // drafts at most, from 1
  };
  // Called after each step of the draft: the rows it computed, prompts included, and the sequences it drafted for.
  using StepCallback = std::function<void(int rows, int drafts)>;
  // The drafts for each wish; fewer or none where the draft is not yet as far as the target, or its cache is full.
  // A token that the draft itself finds less probable than `least_probability` is not among them, nor what follows it.
  // Computes about `prompt_tokens` of prompts at most; the next call goes on from there.
  std::vector<std::vector<TokenId>> draft(std::span<const Wish> wishes, double least_probability, int32_t prompt_tokens,
                                          const StepCallback& after_step);
  // How many tokens the draft would have to compute before it could draft for the sequence.
  int64_t lag(const Sequence& target) const;
  // The most tokens that a step for one more draft of a sequence computes where nothing was missed.
  int few_tokens() const;

  // Whether it wants to see(): true for a prediction layer.
  bool predicts() const { return runner_->model().config().part == ModelPart::kPrediction; }
  // After Scheduler::commit() of a step of the target: its hidden states, by the output of each row.
  void see(const StepPlan& plan, const ModelRunner& target, std::span<const int> outputs);

  // The target's sequence has ended, or needs no drafts for now. Does nothing for an unknown one.
  void end(RequestId id);
  void reset();

  ModelRunner& runner() { return *runner_; }
  const ModelRunner& runner() const { return *runner_; }
  const Scheduler& scheduler() const { return scheduler_; }

 private:
  struct Round;
  // Beside a prediction layer's sequence.
  struct Predicted {
    int64_t shift = 0;       // tokens of the target before its first, at least one
    int64_t confirmed = 0;   // its tokens that come with the target's states
    std::vector<float> own;  // its own state of its last token, [n_embd]
  };
  // The target's known tokens that the draft's sequence has, or would have; empty if states are missing.
  std::span<const TokenId> tokens_of(const Sequence& target) const;
  // How many of them the draft has computed for good.
  int64_t computed(const Sequence& target) const;
  void run(const StepPlan& plan);
  void drop(RequestId id);
  // Brings the draft's sequence to the target's tokens; null when the draft's context cannot hold them.
  Sequence* follow(const Wish& wish, bool reports);
  void collect(Round& round, const StepPlan& plan, const SampledStep& sampled);
  void close(Round& round, RequestId id);

  std::unique_ptr<ModelRunner> runner_;
  const size_t n_vocab_;  // tokens that both models have
  Scheduler scheduler_;
  StepInputs inputs_;
  StepSampler sampler_;
  HiddenStates hidden_;
  std::unordered_map<RequestId, Predicted> predicted_;
};

}  // namespace infer
