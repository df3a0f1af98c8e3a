#include "src/server/generation_run.h"

#include <algorithm>
#include <utility>

namespace infer {
namespace {

ApiError stopping_error() {
  return ApiError(503, "server_error", "The server is shutting down. Try again later.", "stopping");
}

}  // namespace

void GenerationRun::Watch::check() const {
  if (client_gone()) throw ApiError(kClientGone, "client_error", "The client closed the connection.");
  if (server_stops()) throw stopping_error();
  if (Clock::now() >= deadline)
    throw ApiError(504, "server_error", "The request took longer than the server allows (--timeout).", "timeout");
}

GenerationRun::~GenerationRun() {
  for (size_t i = 0; i < n_submitted_; ++i) {
    if (unfinished_[i] > 0) engine_.cancel(*generations_[i]);
  }
}

void GenerationRun::add(std::unique_ptr<Generation> generation) {
  generation->first_choice = n_choices_;
  generation->answers = answers_;
  n_choices_ += generation->params.n;
  unfinished_.push_back(generation->params.n);
  generations_.push_back(std::move(generation));
}

void GenerationRun::start(Admission& admission) {
  int64_t prompt_tokens = 0;
  for (const auto& generation : generations_) prompt_tokens += static_cast<int64_t>(generation->prompt.size());
  const std::shared_ptr<Admission::Ticket> ticket = admission.enter(n_choices_, prompt_tokens);
  places_ = ticket->places();
  for (const auto& generation : generations_) {
    generation->ticket = ticket;
    generation->max_running = static_cast<int32_t>(places_);
  }
  n_unfinished_ = n_choices_;
  feed();
}

int64_t GenerationRun::places_of(size_t generation) const {
  return std::min<int64_t>(unfinished_[generation], places_);
}

void GenerationRun::feed() {
  while (n_submitted_ < generations_.size() && places_used_ + places_of(n_submitted_) <= places_) {
    places_used_ += places_of(n_submitted_);
    engine_.submit(generations_[n_submitted_++]);
  }
}

void GenerationRun::run(const Watch& watch, const std::function<void(AnswerEvent&&)>& take) {
  watch.check();
  while (n_unfinished_ > 0) {
    for (AnswerEvent& event : answers_->wait(kLongestDelay)) {
      if (event.finished != FinishReason::kNone) finish_choice(event.choice);
      if (event.finished == FinishReason::kError) throw ApiError(500, "server_error", event.error, "engine_error");
      if (event.finished == FinishReason::kCancelled) throw stopping_error();
      take(std::move(event));
    }
    feed();
    if (n_unfinished_ == 0) return;
    watch.check();
  }
}

void GenerationRun::finish_choice(int32_t choice) {
  const size_t generation = index_of(choice);
  places_used_ -= places_of(generation);
  --unfinished_[generation];
  --n_unfinished_;
  places_used_ += places_of(generation);
}

size_t GenerationRun::index_of(int32_t choice) const {
  const auto after = std::upper_bound(generations_.begin(), generations_.end(), choice,
                                      [](int32_t c, const auto& generation) { return c < generation->first_choice; });
  return static_cast<size_t>(after - generations_.begin()) - 1;
}

const Generation& GenerationRun::generation_of(int32_t choice) const { return *generations_[index_of(choice)]; }

}  // namespace infer
