// The answers to one HTTP request: passes its prompts to the engine, as many at once as the request has places, and
// collects or streams the results. Unfinished generations are cancelled on destruction, and when the client disconnects
// or the time is up. One thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/server/api_error.h"
#include "src/server/engine_thread.h"
#include "src/server/generation.h"

namespace infer {

// Before a disconnect, a timeout or the end of the server is noticed.
inline constexpr std::chrono::milliseconds kLongestDelay{50};

class GenerationRun {
 public:
  struct Watch {
    std::function<bool()> client_gone;
    std::function<bool()> server_stops;
    Clock::time_point deadline;
    // Throws ApiError: 499 if the client has disconnected, 503 if the server is stopping, 504 if the time is up.
    void check() const;
  };

  explicit GenerationRun(EngineThread& engine) : engine_(engine), answers_(std::make_shared<AnswerQueue>()) {}
  ~GenerationRun();
  GenerationRun(const GenerationRun&) = delete;
  GenerationRun& operator=(const GenerationRun&) = delete;

  // Adds another prompt; its choices are numbered after the existing ones. REQUIRES: start() has not been called.
  void add(std::unique_ptr<Generation> generation);
  // Acquires places for all of them and starts. Throws what Admission::enter throws; nothing has started then.
  void start(Admission& admission);

  // Passes events on, in order, until every choice is finished. Throws ApiError: what `watch` throws, and 500 if the
  // engine failed.
  void run(const Watch& watch, const std::function<void(AnswerEvent&&)>& take);

  const std::vector<std::shared_ptr<Generation>>& generations() const { return generations_; }
  const Generation& generation_of(int32_t choice) const;
  int32_t n_choices() const { return n_choices_; }

 private:
  // Submits more generations as long as there are places for them.
  void feed();
  void finish_choice(int32_t choice);
  size_t index_of(int32_t choice) const;  // index into generations_
  int64_t places_of(size_t generation) const;

  EngineThread& engine_;
  std::shared_ptr<AnswerQueue> answers_;
  std::vector<std::shared_ptr<Generation>> generations_;
  std::vector<int32_t> unfinished_;  // number of unfinished choices, by generation
  size_t n_submitted_ = 0;           // generations
  int64_t places_ = 0, places_used_ = 0;
  int32_t n_choices_ = 0, n_unfinished_ = 0;
};

// The status for a client that disconnected; it is logged and counted, but never sent.
inline constexpr int kClientGone = 499;

}  // namespace infer
