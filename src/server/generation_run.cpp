#include "src/server/generation_run.h"

#include <utility>

namespace infer {
namespace {

// How soon a client that left, or a time that is over, is noticed at the latest.
constexpr std::chrono::milliseconds kLook{50};

}  // namespace

GenerationRun::~GenerationRun() {
  if (!started_ || n_unfinished_ == 0) return;
  for (const auto& generation : generations_) engine_.cancel(generation);
}

void GenerationRun::add(std::unique_ptr<Generation> generation) {
  generation->first_choice = n_choices_;
  generation->answers = answers_;
  n_choices_ += generation->params.n;
  generations_.push_back(std::move(generation));
}

void GenerationRun::start() {
  started_ = true;
  n_unfinished_ = n_choices_;
  for (const auto& generation : generations_) engine_.submit(generation);
}

void GenerationRun::run(const Watch& watch, const std::function<void(AnswerEvent&&)>& take) {
  while (n_unfinished_ > 0) {
    for (AnswerEvent& event : answers_->wait(kLook)) {
      if (event.finished != FinishReason::kNone) --n_unfinished_;
      if (event.finished == FinishReason::kError) throw ApiError(500, "server_error", event.error, "engine_error");
      if (event.finished == FinishReason::kCancelled)
        throw ApiError(503, "server_error", "the server stops", "stopping");
      take(std::move(event));
    }
    if (n_unfinished_ == 0) return;
    if (watch.client_gone()) throw ApiError(kClientGone, "client_error", "the client closed the connection");
    if (watch.server_stops()) throw ApiError(503, "server_error", "the server stops", "stopping");
    if (Clock::now() >= watch.deadline) {
      throw ApiError(504, "server_error", "the time for a request is over", "timeout");
    }
  }
}

const Generation& GenerationRun::generation_of(int32_t choice) const {
  size_t i = 0;
  while (i + 1 < generations_.size() && generations_[i + 1]->first_choice <= choice) ++i;
  return *generations_[i];
}

}  // namespace infer
