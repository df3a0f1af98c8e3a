#include "src/server/admission.h"

#include <algorithm>
#include <cmath>

#include "ggml-like/error.h"
#include "src/server/api_error.h"

namespace infer {
namespace {

constexpr int kLongestWait = 60;  // seconds that a client is asked to stay away

ApiError too_many(const std::string& message, const std::string& code, int retry_after) {
  ApiError error(429, "rate_limit_error", message, code);
  error.retry_after = retry_after;
  return error;
}

}  // namespace

Admission::Ticket& Admission::Ticket::operator=(Ticket&& other) noexcept {
  if (this == &other) return *this;
  release();
  admission_ = std::exchange(other.admission_, nullptr);
  sequences_ = other.sequences_;
  waiting_tokens_ = std::exchange(other.waiting_tokens_, 0);
  entered_ = other.entered_;
  return *this;
}

void Admission::Ticket::started() {
  if (!admission_ || waiting_tokens_ == 0) return;
  const std::lock_guard lock(admission_->mutex_);
  admission_->waiting_tokens_ -= std::exchange(waiting_tokens_, 0);
}

void Admission::Ticket::release() {
  if (!admission_) return;
  started();
  const double held = std::chrono::duration<double>(std::chrono::steady_clock::now() - entered_).count();
  const std::lock_guard lock(admission_->mutex_);
  admission_->in_flight_ -= sequences_;
  admission_->mean_seconds_ += (held - admission_->mean_seconds_) / 8;
  admission_ = nullptr;
}

int Admission::retry_after_locked() const {
  const double rounds = static_cast<double>(in_flight_) / static_cast<double>(limits_.running);
  return std::clamp(static_cast<int>(std::ceil(mean_seconds_ * rounds / 2)), 1, kLongestWait);
}

Admission::Ticket Admission::enter(int64_t sequences, int64_t prompt_tokens) {
  const std::lock_guard lock(mutex_);
  if (in_flight_ > 0 && in_flight_ + sequences > limits_.running + limits_.waiting) {
    throw too_many(concat("the queue is full: at most ", limits_.waiting, " answers wait; try again later"),
                   "queue_full", retry_after_locked());
  }
  if (waiting_tokens_ > 0 && waiting_tokens_ + prompt_tokens > limits_.waiting_tokens) {
    throw too_many(
        concat("the queue is full: at most ", limits_.waiting_tokens, " tokens of prompts wait; try again later"),
        "queue_tokens_full", retry_after_locked());
  }
  Ticket ticket;
  ticket.admission_ = this;
  ticket.sequences_ = sequences;
  ticket.waiting_tokens_ = prompt_tokens;
  ticket.entered_ = std::chrono::steady_clock::now();
  in_flight_ += sequences;
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
    throw too_many(concat("at most ", limits_.per_key, " requests of one key at a time; try again later"),
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
