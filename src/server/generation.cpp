#include "src/server/generation.h"

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
  some_.wait_for(lock, timeout, [&] { return !events_.empty(); });
  return std::exchange(events_, {});
}

}  // namespace infer
