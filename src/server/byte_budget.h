// A byte budget shared by requests: bounds the memory of all requests in progress. Any thread; shares must not outlive
// their budget.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>

namespace infer {

class ByteBudget {
 public:
  explicit ByteBudget(size_t limit) : limit_(limit) {}

  // Bytes taken from a budget; the destructor returns them.
  class Share {
   public:
    Share() = default;
    explicit Share(ByteBudget& budget) : budget_(&budget) {}
    Share(Share&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Share& operator=(Share&& other) noexcept;
    ~Share() { release(); }

    // Takes more bytes if they are available now. A sole holder always gets its bytes, however many.
    bool try_grow(size_t bytes);
    // The same, but waits for them; false after the timeout.
    bool grow(size_t bytes, std::chrono::milliseconds timeout);
    // No effect without a budget.
    void release();

   private:
    bool take_locked(size_t bytes);

    ByteBudget* budget_ = nullptr;
    size_t bytes_ = 0;
  };

 private:
  const size_t limit_;
  std::mutex mutex_;
  std::condition_variable released_;
  size_t taken_ = 0;  // guarded by mutex_
};

}  // namespace infer
