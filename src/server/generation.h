// One prompt on its way through the engine, and the queue through which its answers come back. A handler makes a
// Generation, gives it to the EngineThread and reads from the queue; several generations may share one.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/engine/sequence.h"
#include "src/server/admission.h"
#include "src/server/requests.h"
#include "src/text/answer_text.h"

namespace infer {

using Clock = std::chrono::steady_clock;

// Of one answer. Points in time that were not reached stay at the epoch.
struct AnswerTimes {
  Clock::time_point arrived, started, first_token, ended;
};

// What the engine has to tell about one choice.
struct AnswerEvent {
  int32_t choice = 0;
  AnswerDelta delta;
  int32_t new_tokens = 0;
  FinishReason finished = FinishReason::kNone;
  std::string error;  // of kError
  AnswerTimes times;  // of a finished choice
  // Of the first event of a generation's first choice; else 0.
  int64_t prompt_tokens = 0, cached_tokens = 0;
  std::vector<TokenScore> prompt_scores;  // where they were asked for
  std::vector<float> embedding;           // of an embedding
};

// From the engine's thread to a handler's. Bounded by what was asked for: at most one event per token.
class AnswerQueue {
 public:
  void push(AnswerEvent event);
  // Everything that came since the last call; waits up to `timeout` for something.
  // Throws std::bad_alloc once run_out_of_memory() was called.
  std::vector<AnswerEvent> wait(std::chrono::milliseconds timeout);
  // Ends the queue because an allocation failed: wait() throws from now on. Allocates nothing.
  void run_out_of_memory() noexcept;

 private:
  std::mutex mutex_;
  std::condition_variable some_;
  std::vector<AnswerEvent> events_;  // guarded by mutex_
  bool out_of_memory_ = false;       // guarded by mutex_
};

// Constant once it is given to the EngineThread, which tells the ticket what becomes of it, save for `cancelled`.
struct Generation {
  std::vector<TokenId> prompt;
  GenerationParams params;
  std::shared_ptr<const DryBreakers> dry_breakers;  // set by EngineThread::submit() where the request needs some
  AnswerRules rules;                                // how the answers end and how their text is read
  bool prompt_scores = false;                       // log-probabilities of the prompt's tokens, before the answer
  Pooling pooling = Pooling::kNone;                 // otherwise an embedding instead of an answer
  int32_t first_choice = 0;                         // number of the first of params.n choices
  std::shared_ptr<AnswerQueue> answers;
  Clock::time_point arrived;
  std::shared_ptr<Admission::Ticket> ticket;  // of the request; null: none is needed
  int32_t max_running = 0;                    // see Request
  std::atomic<bool> cancelled = false;
};

}  // namespace infer
