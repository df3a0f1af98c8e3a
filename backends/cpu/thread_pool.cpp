#include "backends/cpu/thread_pool.h"

#include <sched.h>

#include <utility>

namespace infer::cpu {
namespace {

// About 50 microseconds: longer than the gaps between the operations of a step, much shorter than a time slice.
constexpr int kSpins = 2000;

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

void stay_on(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  sched_setaffinity(0, sizeof(set), &set);  // pid 0 is the calling thread; a failure leaves it unpinned
}

ThreadPool::ThreadPool(int n_threads, const std::vector<int>& processors)
    : parts_(std::make_unique<Part[]>(static_cast<size_t>(n_threads))), active_(n_threads) {
  for (int i = 1; i < n_threads; ++i) {
    const int processor = processors.empty() ? -1 : processors[i % processors.size()];
    workers_.emplace_back([this, i, processor] {
      if (processor >= 0) stay_on(processor);
      work(i);
    });
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    generation_ += uint64_t{1} << kThreadBits;
  }
  wake_.notify_all();
  for (std::thread& t : workers_) t.join();
}

int64_t ThreadPool::Part::left() const {
  const uint64_t r = range.load(std::memory_order_relaxed);
  return static_cast<int64_t>(r >> 32) - static_cast<int64_t>(r & UINT32_MAX);
}

int64_t ThreadPool::Part::take_first() {
  uint64_t r = range.load(std::memory_order_relaxed);
  while ((r & UINT32_MAX) < r >> 32) {
    if (range.compare_exchange_weak(r, r + 1)) return static_cast<int64_t>(r & UINT32_MAX);
  }
  return -1;
}

int64_t ThreadPool::Part::take_last() {
  uint64_t r = range.load(std::memory_order_relaxed);
  while ((r & UINT32_MAX) < r >> 32) {
    if (range.compare_exchange_weak(r, r - (uint64_t{1} << 32))) return static_cast<int64_t>(r >> 32) - 1;
  }
  return -1;
}

int64_t ThreadPool::take_from_others(int thread) {
  for (;;) {
    int most = thread;
    for (int i = 0; i < active_; ++i) {
      if (parts_[i].left() > parts_[most].left()) most = i;
    }
    if (parts_[most].left() <= 0) return -1;
    const int64_t piece = parts_[most].take_last();
    if (piece >= 0) return piece;
  }
}

void ThreadPool::take_pieces(int thread) {
  try {
    for (;;) {
      int64_t piece = parts_[thread].take_first();
      if (piece < 0) piece = take_from_others(thread);
      if (piece < 0) return;
      call_(body_, piece, thread);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    for (int i = 0; i < active_; ++i) parts_[i].range = 0;
  }
}

void ThreadPool::work(int thread) {
  uint64_t seen = 0;
  for (;;) {
    for (int i = 0; i < kSpins && generation_.load(std::memory_order_acquire) == seen; ++i) pause();
    if (generation_.load(std::memory_order_acquire) == seen) {
      std::unique_lock lock(mutex_);
      ++sleepers_;
      wake_.wait(lock, [&] { return generation_.load() != seen; });
      --sleepers_;
    }
    seen = generation_.load(std::memory_order_acquire);
    if (stop_) return;
    if (static_cast<uint64_t>(thread) >= (seen & ((uint64_t{1} << kThreadBits) - 1))) continue;
    take_pieces(thread);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

void ThreadPool::dispatch(int64_t n_pieces, const void* body, Call call) {
  body_ = body;
  call_ = call;
  for (int i = 0; i < active_; ++i) {
    parts_[i].range =
        static_cast<uint64_t>(first_piece(n_pieces, i + 1)) << 32 | static_cast<uint64_t>(first_piece(n_pieces, i));
  }
  busy_ = active_ - 1;
  generation_ = ((generation_.load() >> kThreadBits) + 1) << kThreadBits | static_cast<uint64_t>(active_);
  if (sleepers_.load() > 0) {
    { const std::lock_guard lock(mutex_); }
    wake_.notify_all();
  }
  take_pieces(0);
  // Other threads may have been descheduled on a busy machine: spin first, then yield the processor to them.
  for (int i = 0; busy_.load(std::memory_order_acquire) != 0; ++i) {
    if (i < kSpins) pause();
    else std::this_thread::yield();
  }
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

}  // namespace infer::cpu
