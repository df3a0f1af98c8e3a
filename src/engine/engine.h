// Turns requests into tokens: the terminal chat is one request, a server has many. Each step is schedule, run, sample,
// commit. Owned and called by one thread.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/engine/chunk_pacer.h"
#include "src/engine/draft/speculator.h"
#include "src/engine/engine_options.h"
#include "src/engine/load_runner.h"
#include "src/engine/pooling.h"
#include "src/engine/scheduler.h"
#include "src/engine/step_sampling.h"
#include "src/text/dry_breaker_cache.h"
#include "src/text/tokenizer.h"

namespace infer {

// The result of a step for one sequence.
struct Progress {
  RequestId id = 0;             // of a request, or of one of its choices
  std::vector<TokenId> tokens;  // newly generated
  FinishReason finished = FinishReason::kNone;
  int64_t prompt_tokens = 0, cached_tokens = 0;  // prompt tokens: all, and those found in the cache
  int64_t computed_tokens = 0;                   // prompt tokens known to the cache by now, found or computed
  double queue_seconds = 0;                      // from submit() to its first step
  DraftCounts drafts;                            // since the sequence began
  std::vector<float> pooled;                     // with the last step of a pooling request: [n_embd] or [n_scores]
  std::string error;                             // the reason, with FinishReason::kError
};

// Time and work since construction.
struct EngineStats {
  int64_t prompt_tokens = 0, prompt_steps = 0;  // steps that computed any prompt token
  int64_t generated_tokens = 0;                 // in all
  int64_t decode_tokens = 0, decode_steps = 0;  // the part generated in decode-only steps, and the number of such steps
  int64_t decode_rounds = 0;                    // sequences summed over those steps: decode_tokens without drafts
  double prompt_seconds = 0, decode_seconds = 0;
};

class Engine {
 public:
  // Throws what runner_options(), load_runner() and Scheduler() throw.
  Engine(std::shared_ptr<Model> model, const EngineOptions& options);
  ~Engine();

  // Queues a request, adding dry_breakers() if it has none; false if the queue is full. Throws what Scheduler::add
  // throws, and Error(kUnsupported) if the model cannot do what it asks for.
  [[nodiscard]] bool submit(Request request);
  // Draft tokens that may follow the known ones of a sequence. Its next step verifies them; they do not change the
  // text.
  void propose(RequestId id, std::span<const TokenId> drafts) { scheduler_->propose(id, drafts); }
  // Drops every request and clears the cache. For recovery after std::bad_alloc interrupted submit(), cancel() or
  // step(). May throw std::bad_alloc too, and may then be called again.
  void reset();
  // Ends a request immediately, whatever its state; unknown ids are ignored. While its prompt is being computed, its
  // choices end with it; afterwards each continues alone. Must not be called from a LogitsCallback.
  void cancel(RequestId id, FinishReason reason = FinishReason::kCancelled);
  bool idle() const;
  // Releases what a conversation has retained (Request::conversation).
  void forget(uint64_t conversation) { scheduler_->forget(conversation); }

  // Runs one step and returns the progress of every sequence that took part or ended. Empty if there is nothing to do.
  std::vector<Progress> step();

  // Thread-safe. Lets other threads build in advance what submit() would otherwise build on the engine's thread.
  DryBreakerCache& dry_breakers() { return dry_breakers_; }

  using LogitsCallback = StepSampler::LogitsCallback;
  void on_logits(LogitsCallback callback) { sampler_->on_logits(std::move(callback)); }

  const Model& model() const { return runner_->model(); }
  ModelRunner& runner() { return *runner_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const Scheduler& scheduler() const { return *scheduler_; }
  const Speculator* speculator() const { return speculator_.get(); }  // null if there are never any drafts
  const EngineStats& stats() const { return stats_; }
  Profile* profile() { return profile_.get(); }  // null unless profiling is on
  const StepRecord& last_step() const { return last_step_; }
  int64_t context() const { return scheduler_->config().max_context; }
  uint64_t last_logits_hash() const { return sampler_->last_logits_hash(); }

 private:
  // The four parts of a step.
  StepPlan schedule();
  void run(const StepPlan& plan);
  SampledStep sample(const StepPlan& plan);
  std::vector<Progress> commit(const StepPlan& plan, SampledStep& sampled);

  // Checks that the model can do what the request asks for, and fills in how. Throws Error(kUnsupported).
  void prepare_pooling(Request& request) const;
  void take(RequestId id);
  Progress describe(const Sequence& s, int64_t known_before, const SampledStep& sampled);
  void record(const StepPlan& plan, int64_t prompt_tokens, const std::vector<Progress>& progress);
  void note_fallbacks();

  Tokenizer tokenizer_;
  DryBreakerCache dry_breakers_;
  std::unique_ptr<Profile> profile_;  // outlives the runner
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<StepInputs> inputs_;
  std::vector<int> outputs_;  // of each row of the last step, see run_step()
  std::unique_ptr<StepSampler> sampler_;
  std::unique_ptr<Speculator> speculator_;  // null: no drafts but those of propose()
  Pooler pooler_;
  EngineStats stats_;
  StepRecord last_step_;
  ChunkPacer pacer_;
  const bool isolate_errors_;
  const std::function<void(const std::string& line)> note_;
  size_t n_noted_ = 0;                     // fallbacks
  double step_start_ = 0, run_start_ = 0;  // seconds of a steady clock, as below; after the drafts were made
  struct Times {
    double submitted, started;  // 0 before the first step
  };
  std::unordered_map<RequestId, Times> times_;
};

}  // namespace infer
