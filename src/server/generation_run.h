// The answers to one HTTP request: gives its prompts to the engine, as many at a time as the request has places, and
// collects or streams what comes back. What is still under way when it is destroyed, or when the client leaves or the
// time is over, is cancelled. One thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/server/api_error.h"
#include "src/server/engine_thread.h"
#include "src/server/generation.h"

namespace infer {

class GenerationRun {
 public:
  struct Watch {
    std::function<bool()> client_gone;
    std::function<bool()> server_stops;
    Clock::time_point deadline;
    // Throws ApiError: 499 when the client is gone, 503 when the server stops, 504 when the time is over.
    void check() const;
  };

  explicit GenerationRun(EngineThread& engine) : engine_(engine), answers_(std::make_shared<AnswerQueue>()) {}
  ~GenerationRun();
  GenerationRun(const GenerationRun&) = delete;
  GenerationRun& operator=(const GenerationRun&) = delete;

  // Another prompt, with its choices numbered after those there are. REQUIRES that start() was not called.
  void add(std::unique_ptr<Generation> generation);
  // Takes places for all of them and begins. Throws what Admission::enter throws; then nothing has begun.
  void start(Admission& admission);

  // Passes the events on, in order, until every choice is finished. Throws ApiError: what `watch` throws, and 500 when
  // the engine failed.
  void run(const Watch& watch, const std::function<void(AnswerEvent&&)>& take);

  const std::vector<std::shared_ptr<Generation>>& generations() const { return generations_; }
  const Generation& generation_of(int32_t choice) const;
  int32_t n_choices() const { return n_choices_; }

 private:
  // Submits further generations while there are places for them.
  void feed();
  void finish_choice(int32_t choice);
  size_t index_of(int32_t choice) const;  // among the generations
  int64_t places_of(size_t generation) const;

  EngineThread& engine_;
  std::shared_ptr<AnswerQueue> answers_;
  std::vector<std::shared_ptr<Generation>> generations_;
  std::vector<int32_t> unfinished_;  // choices of each generation
  size_t n_submitted_ = 0;           // generations
  int64_t places_ = 0, places_used_ = 0;
  int32_t n_choices_ = 0, n_unfinished_ = 0;
};

// The status that stands for a client that left; it is logged and counted, and nobody receives it.
inline constexpr int kClientGone = 499;

}  // namespace infer
