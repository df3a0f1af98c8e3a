// The thread that owns the engine. Handlers pass it generations and cancellations between steps; it turns the results
// of each step into events for them.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/engine/engine.h"
#include "src/server/generation.h"
#include "src/server/metrics.h"

namespace infer {

class EngineThread {
 public:
  // `on_failure` is called on the engine's thread if the engine itself fails; nothing can be generated after that.
  EngineThread(std::unique_ptr<Engine> engine, Metrics& metrics, std::function<void(const std::string&)> on_failure);
  // Ends everything in progress with kCancelled.
  ~EngineThread();

  // Any thread. Events arrive for every choice until each is finished; an error that concerns only this prompt arrives
  // as kError. New DRY breakers are built here, on the caller's thread, since that takes a pass over the vocabulary.
  void submit(std::shared_ptr<Generation> generation);
  // Any thread. Unfinished choices end with kCancelled before the next step. Never allocates: destructors call it.
  void cancel(Generation& generation) noexcept;

  // Immutable, for any thread.
  const Tokenizer& tokenizer() const { return engine_->tokenizer(); }
  const Model& model() const { return engine_->model(); }
  int64_t context() const { return engine_->context(); }
  int64_t dry_breaker_builds() const { return engine_->dry_breakers().builds(); }
  int64_t cache_tokens() const { return cache_tokens_; }  // capacity of the whole KV cache
  const Placement& placement() const { return engine_->runner().placed().placement(); }
  const std::vector<DeviceUse>& memory_use() const { return engine_->runner().memory_use(); }
  // Bytes that the draft model takes on each device; empty without a draft.
  const std::vector<uint64_t>& draft_memory() const { return draft_memory_; }

 private:
  // An unfinished choice.
  struct Choice {
    std::shared_ptr<Generation> generation;
    int32_t index = 0;  // among the generation's choices
    AnswerText text;
    AnswerTimes times;
    DraftCounts drafts;
    int64_t n_tokens = 0;
    bool reported_prompt = false;
    std::vector<TokenScore> prompt_scores;
    std::map<int64_t, std::span<const float>> rows;  // logits of the current step's sampled rows, by position
    std::map<int64_t, TokenScore> scores;            // of the sampled tokens, by position
    std::string error;                               // why a score could not be computed
  };
  // A log-probability requested for the current step.
  struct Scoring {
    Choice* choice;
    int64_t position;  // of the row
    std::span<const float> logits;
    TokenId token;  // the next token
    bool of_prompt;
    TokenScore result;
    std::string error;
  };

  void run();
  // What handlers have passed in since the last call. Blocks until there is something to do.
  struct Work {
    std::vector<std::shared_ptr<Generation>> submitted;
    bool some_cancelled = false, stopping = false;
  };
  Work wait_for_work();
  // Starts and stops what `work` says, then runs one step.
  void advance(const Work& work);
  void start(const std::shared_ptr<Generation>& generation);
  void stop_cancelled();
  void stop_all(FinishReason reason, const std::string& error = "");
  // After a failed allocation in advance(): ends all requests, including those just submitted, with std::bad_alloc.
  void drop_everything(const Work& work) noexcept;
  void stop(const std::shared_ptr<Generation>& generation, FinishReason reason, const std::string& error = "");
  void step();
  void take_logits(RequestId id, int64_t position, std::span<const float> logits);
  void take_progress(const Progress& progress, Clock::time_point before);
  void add_tokens(Choice& choice, const Progress& progress, AnswerEvent& event);
  void report_prompt(Choice& choice, const Progress& progress, AnswerEvent& event);
  // Reports the end of the choice and removes it.
  void finish(RequestId id, Choice& choice, AnswerEvent event);
  // Computes the scores of the step's prompts and tokens, on all threads of the engine.
  void score(const std::vector<Progress>& progress);
  // Publishes the state after a step before its events, so that a client that got its answer sees its effect.
  void publish();

  std::unique_ptr<Engine> engine_;
  Metrics& metrics_;
  const std::function<void(const std::string&)> on_failure_;
  const int64_t cache_tokens_;
  std::vector<uint64_t> draft_memory_;  // constant after construction

  // Used by the engine's thread only.
  std::unordered_map<RequestId, Choice> choices_;
  std::unordered_map<const Generation*, std::vector<RequestId>> ids_;         // of the unfinished choices
  std::vector<std::pair<std::shared_ptr<AnswerQueue>, AnswerEvent>> events_;  // of the current step
  std::vector<Scoring> scorings_;                                             // of the current step
  RequestId last_id_ = 0;
  std::string failure_;           // why the engine has failed
  bool engine_is_dirty_ = false;  // an allocation failed during its work; it must be reset before any other work

  std::mutex mutex_;
  std::condition_variable work_;
  std::vector<std::shared_ptr<Generation>> submitted_;  // guarded by mutex_
  bool some_cancelled_ = false;                         // guarded by mutex_
  bool stopping_ = false;                               // guarded by mutex_

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace infer
