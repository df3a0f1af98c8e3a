#include "src/server/admission.h"

#include <algorithm>
#include <cmath>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "src/server/api_error.h"

namespace infer {
namespace {

constexpr int kLongestWait = 60;  // seconds; limit on Retry-After

ApiError too_many(const std::string& message, const std::string& code, int retry_after) {
  ApiError error(429, "rate_limit_error", message, code);
  error.retry_after = retry_after;
  return error;
}

}  // namespace

Admission::Ticket::Ticket(Admission& admission, int64_t places)
    : admission_(admission), places_at_most_(places), entered_(std::chrono::steady_clock::now()) {}

Admission::Ticket::~Ticket() {
  const std::lock_guard lock(admission_.mutex_);
  admission_.waiting_tokens_ -= waiting_tokens_;
  set_answers_locked(0);
}

void Admission::Ticket::started(int64_t prompt_tokens) {
  const std::lock_guard lock(admission_.mutex_);
  const int64_t n = std::min(prompt_tokens, waiting_tokens_);
  waiting_tokens_ -= n;
  admission_.waiting_tokens_ -= n;
}

void Admission::Ticket::finished() {
  const std::lock_guard lock(admission_.mutex_);
  if (answers_ > 0) set_answers_locked(answers_ - 1);
}

void Admission::Ticket::set_answers_locked(int64_t answers) {
  const int64_t before = std::min(std::exchange(answers_, answers), places_at_most_);
  const double held = std::chrono::duration<double>(std::chrono::steady_clock::now() - entered_).count();
  for (int64_t place = std::min(answers, places_at_most_); place < before; ++place) {
    --admission_.in_flight_;
    admission_.mean_seconds_ += (held - admission_.mean_seconds_) / 8;
  }
}

int Admission::retry_after_locked() const {
  const double rounds = static_cast<double>(in_flight_) / static_cast<double>(limits_.running);
  return std::clamp(static_cast<int>(std::ceil(mean_seconds_ * rounds / 2)), 1, kLongestWait);
}

int64_t Admission::places_of(int64_t answers) const {
  return std::min(answers, std::max<int64_t>(1, limits_.running - 1));
}

std::shared_ptr<Admission::Ticket> Admission::enter(int64_t answers, int64_t prompt_tokens) {
  const int64_t places = places_of(answers);
  // Created before locking, because ~Ticket also locks: it runs if an allocation fails or the queue is full.
  std::shared_ptr<Ticket> ticket(new Ticket(*this, places));
  const std::lock_guard lock(mutex_);
  if (in_flight_ + places > limits_.running + limits_.waiting) {
    throw too_many(
        concat("The queue is full: at most ", grouped(limits_.waiting), " answers may wait. Try again later."),
        "queue_full", retry_after_locked());
  }
  if (waiting_tokens_ > 0 && waiting_tokens_ + prompt_tokens > limits_.waiting_tokens) {
    throw too_many(concat("The queue is full: at most ", grouped(limits_.waiting_tokens),
                          " prompt tokens may wait. Try again later."),
                   "queue_tokens_full", retry_after_locked());
  }
  ticket->answers_ = answers;
  ticket->waiting_tokens_ = prompt_tokens;
  in_flight_ += places;
  waiting_tokens_ += prompt_tokens;
  return ticket;
}

Admission::KeySlot& Admission::KeySlot::operator=(KeySlot&& other) noexcept {
  if (this == &other) return *this;
  release();
  admission_ = std::exchange(other.admission_, nullptr);
  key_ = std::move(other.key_);
  return *this;
}

void Admission::KeySlot::release() {
  if (!admission_) return;
  const std::lock_guard lock(admission_->mutex_);
  const auto found = admission_->by_key_.find(key_);
  if (--found->second == 0) admission_->by_key_.erase(found);
  admission_ = nullptr;
}

Admission::KeySlot Admission::enter_key(const std::string& key) {
  const std::lock_guard lock(mutex_);
  int64_t& n = by_key_[key];
  if (limits_.per_key > 0 && n >= limits_.per_key) {
    throw too_many(
        concat("This key may have ", limits_.per_key, " requests in progress. Try again when one has finished."),
        "too_many_requests", retry_after_locked());
  }
  ++n;
  KeySlot slot;
  slot.admission_ = this;
  slot.key_ = key;
  return slot;
}

int64_t Admission::in_flight() const {
  const std::lock_guard lock(mutex_);
  return in_flight_;
}

}  // namespace infer
