// Runs numbered tasks on several threads and hands their results to the caller in order. The outcome does not depend on
// the number of threads: if several tasks fail, the earliest failure is reported.
//
// At most `window` results exist at a time, each in a slot whose memory is reused. Used from one thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace infer {

template <typename Result>
class OrderedWork {
 public:
  // work(task, result) runs on any of the threads; `result` may hold leftovers of an earlier task in the same slot.
  OrderedWork(int n_threads, size_t n_tasks, std::function<void(size_t task, Result& result)> work)
      : n_tasks_(n_tasks), work_(std::move(work)), slots_(static_cast<size_t>(n_threads) * 2 + 1) {
    try {
      for (int i = 0; i < n_threads; ++i) threads_.emplace_back([this] { run(); });
    } catch (...) {  // no more threads available: continue with fewer
      if (threads_.empty()) throw;
    }
  }
  // Ends the threads after their current tasks.
  ~OrderedWork() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    room_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  OrderedWork(const OrderedWork&) = delete;
  OrderedWork& operator=(const OrderedWork&) = delete;

  // The result of the next task, valid until the next call; nullptr after the last. Throws what the task threw.
  Result* next() {
    std::unique_lock lock(mutex_);
    if (taken_ > 0) {  // the slot handed out last becomes free
      slots_[(taken_ - 1) % slots_.size()].done = false;
      ++released_;
      room_.notify_one();
    }
    if (taken_ == n_tasks_) return nullptr;
    Slot& slot = slots_[taken_ % slots_.size()];
    finished_.wait(lock, [&] { return slot.done; });
    ++taken_;
    if (slot.failure) std::rethrow_exception(slot.failure);
    return &slot.result;
  }

 private:
  struct Slot {
    bool done = false;
    std::exception_ptr failure;
    Result result;
  };

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      room_.wait(lock, [&] { return stopping_ || started_ == n_tasks_ || started_ < released_ + slots_.size(); });
      if (stopping_ || started_ == n_tasks_) return;
      const size_t task = started_++;
      Slot& slot = slots_[task % slots_.size()];
      lock.unlock();
      std::exception_ptr failure;
      try {
        work_(task, slot.result);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      slot.failure = failure;
      slot.done = true;
      finished_.notify_one();
    }
  }

  const size_t n_tasks_;
  const std::function<void(size_t, Result&)> work_;

  std::mutex mutex_;  // guards everything below, except results being computed or handed out
  std::condition_variable room_, finished_;
  std::vector<Slot> slots_;
  size_t started_ = 0, taken_ = 0, released_ = 0;
  bool stopping_ = false;

  std::vector<std::thread> threads_;
};

}  // namespace infer
