// One prompt on its way through the engine, and the queue that returns its answers. A handler creates a Generation,
// passes it to the EngineThread and reads from the queue; several generations may share one.
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

// The times of one answer. A time not reached stays at the epoch.
struct AnswerTimes {
  Clock::time_point arrived, started, first_token, ended;
};

// An engine event about one choice.
struct AnswerEvent {
  int32_t choice = 0;
  AnswerDelta delta;
  int32_t new_tokens = 0;
  FinishReason finished = FinishReason::kNone;
  std::string error;   // for kError
  AnswerTimes times;   // for a finished choice
  DraftCounts drafts;  // for a finished choice
  // In the first event of a generation's first choice; otherwise 0.
  int64_t prompt_tokens = 0, cached_tokens = 0;
  std::vector<TokenScore> prompt_scores;  // if requested
  std::vector<float> embedding;           // for an embedding request
};

// Carries events from the engine's thread to a handler's. Bounded by the request: at most one event per token.
class AnswerQueue {
 public:
  void push(AnswerEvent event);
  // All events since the last call; waits up to `timeout` for the first. Throws std::bad_alloc after
  // run_out_of_memory().
  std::vector<AnswerEvent> wait(std::chrono::milliseconds timeout);
  // Ends the queue because an allocation failed: wait() throws from then on. Does not allocate.
  void run_out_of_memory() noexcept;

 private:
  std::mutex mutex_;
  std::condition_variable some_;
  std::vector<AnswerEvent> events_;  // guarded by mutex_
  bool out_of_memory_ = false;       // guarded by mutex_
};

// Constant once passed to the EngineThread, except for `cancelled`. The EngineThread keeps the ticket up to date.
struct Generation {
  std::vector<TokenId> prompt;
  GenerationParams params;
  std::shared_ptr<const DryBreakers> dry_breakers;  // set by EngineThread::submit() if needed
  std::shared_ptr<const TokenMask> mask;            // null: the answers are unconstrained
  AnswerRules rules;                                // how the answers end and how their text is read
  bool prompt_scores = false;                       // report log-probabilities of the prompt's tokens before the answer
  Pooling pooling = Pooling::kNone;                 // other values: compute an embedding instead of an answer
  int32_t first_choice = 0;                         // number of the first of its params.n choices
  std::shared_ptr<AnswerQueue> answers;
  Clock::time_point arrived;
  std::shared_ptr<Admission::Ticket> ticket;  // the request's; null: none is needed
  int32_t max_running = 0;                    // as in Request
  std::atomic<bool> cancelled = false;
};

}  // namespace infer
