#include "src/server/generation.h"

#include <new>
#include <utility>

namespace infer {

void AnswerQueue::push(AnswerEvent event) {
  {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  some_.notify_one();
}

std::vector<AnswerEvent> AnswerQueue::wait(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  some_.wait_for(lock, timeout, [&] { return !events_.empty() || out_of_memory_; });
  if (out_of_memory_) throw std::bad_alloc();
  return std::exchange(events_, {});
}

void AnswerQueue::run_out_of_memory() noexcept {
  {
    const std::lock_guard lock(mutex_);
    out_of_memory_ = true;
  }
  some_.notify_one();
}

}  // namespace infer
