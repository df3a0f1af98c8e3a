// The thread that owns the engine. Handlers give it generations and cancellations between two steps; it turns what each
// step brought into events for them.
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
  // `on_failure` is called on the engine's thread when the engine itself fails: nothing can be generated any more.
  EngineThread(std::unique_ptr<Engine> engine, Metrics& metrics, std::function<void(const std::string&)> on_failure);
  // Ends what is under way with kCancelled.
  ~EngineThread();

  // Any thread. Events arrive for every choice until each is finished; an error of this prompt alone arrives as kError.
  // DRY breakers that nobody has asked for before are built here, on the caller's thread: a pass over the vocabulary.
  void submit(std::shared_ptr<Generation> generation);
  // Any thread. What is not finished ends with kCancelled before the next step. Does not allocate: destructors call it.
  void cancel(Generation& generation) noexcept;

  // Immutable, for any thread.
  const Tokenizer& tokenizer() const { return engine_->tokenizer(); }
  const Model& model() const { return engine_->model(); }
  int64_t context() const { return engine_->context(); }
  int64_t dry_breaker_builds() const { return engine_->dry_breakers().builds(); }
  int64_t cache_tokens() const { return cache_tokens_; }  // that the whole KV cache holds
  const Placement& placement() const { return engine_->runner().placed().placement(); }
  const std::vector<DeviceUse>& memory_use() const { return engine_->runner().memory_use(); }

 private:
  // A choice that is not finished.
  struct Choice {
    std::shared_ptr<Generation> generation;
    int32_t index = 0;  // among the generation's choices
    AnswerText text;
    AnswerTimes times;
    int64_t n_tokens = 0;
    bool reported_prompt = false;
    std::vector<TokenScore> prompt_scores;
    std::map<int64_t, std::span<const float>> rows;  // logits of the current step that tokens are sampled from
    std::map<int64_t, TokenScore> scores;            // of the sampled tokens, by the position of their row
    std::string error;                               // why one of them has none
  };
  // A log-probability that the step under way asks for.
  struct Scoring {
    Choice* choice;
    int64_t position;  // of the row
    std::span<const float> logits;
    TokenId token;  // that followed
    bool of_prompt;
    TokenScore result;
    std::string error;
  };

  void run();
  // What handlers gave since the last call, when there is something to do.
  struct Work {
    std::vector<std::shared_ptr<Generation>> submitted;
    bool some_cancelled = false, stopping = false;
  };
  Work wait_for_work();
  // Begins and ends what `work` says and makes one step.
  void advance(const Work& work);
  void start(const std::shared_ptr<Generation>& generation);
  void stop_cancelled();
  void stop_all(FinishReason reason, const std::string& error = "");
  // After an allocation failed somewhere in advance(): ends all requests with std::bad_alloc, the submitted ones too.
  void drop_everything(const Work& work) noexcept;
  void stop(const std::shared_ptr<Generation>& generation, FinishReason reason, const std::string& error = "");
  void step();
  void take_logits(RequestId id, int64_t position, std::span<const float> logits);
  void take_progress(const Progress& progress, Clock::time_point before);
  void add_tokens(Choice& choice, const Progress& progress, AnswerEvent& event);
  void report_prompt(Choice& choice, const Progress& progress, AnswerEvent& event);
  // Reports the choice's end and forgets it.
  void finish(RequestId id, Choice& choice, AnswerEvent event);
  // Computes the scores of the step's prompts and tokens, on all threads of the engine.
  void score(const std::vector<Progress>& progress);
  // Makes the state after a step public, and only then its events: who got an answer sees what it left.
  void publish();

  std::unique_ptr<Engine> engine_;
  Metrics& metrics_;
  const std::function<void(const std::string&)> on_failure_;
  const int64_t cache_tokens_;

  // Of the engine's thread.
  std::unordered_map<RequestId, Choice> choices_;
  std::unordered_map<const Generation*, std::vector<RequestId>> ids_;         // of the unfinished choices
  std::vector<std::pair<std::shared_ptr<AnswerQueue>, AnswerEvent>> events_;  // of the step under way
  std::vector<Scoring> scorings_;                                             // of the step under way
  RequestId last_id_ = 0;
  std::string failure_;           // why the engine can do nothing more
  bool engine_is_dirty_ = false;  // an allocation failed in the middle of its work: it is to be reset before any other

  std::mutex mutex_;
  std::condition_variable work_;
  std::vector<std::shared_ptr<Generation>> submitted_;  // guarded by mutex_
  bool some_cancelled_ = false;                         // guarded by mutex_
  bool stopping_ = false;                               // guarded by mutex_

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace infer
