#include "src/server/byte_budget.h"

#include <algorithm>

namespace infer {

ByteBudget::Share& ByteBudget::Share::operator=(Share&& other) noexcept {
  if (this == &other) return *this;
  release();
  budget_ = std::exchange(other.budget_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

bool ByteBudget::Share::take_locked(size_t bytes) {
  // A sole holder may exceed the limit: waiting could never make room.
  if (budget_->taken_ > bytes_ && bytes > budget_->limit_ - std::min(budget_->limit_, budget_->taken_)) return false;
  budget_->taken_ += bytes;
  bytes_ += bytes;
  return true;
}

bool ByteBudget::Share::try_grow(size_t bytes) {
  const std::lock_guard lock(budget_->mutex_);
  return take_locked(bytes);
}

bool ByteBudget::Share::grow(size_t bytes, std::chrono::milliseconds timeout) {
  std::unique_lock lock(budget_->mutex_);
  return budget_->released_.wait_for(lock, timeout, [&] { return take_locked(bytes); });
}

void ByteBudget::Share::release() {
  if (!budget_ || bytes_ == 0) return;
  {
    const std::lock_guard lock(budget_->mutex_);
    budget_->taken_ -= std::exchange(bytes_, 0);
  }
  budget_->released_.notify_all();
}

}  // namespace infer
