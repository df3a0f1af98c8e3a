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
  sched_setaffinity(0, sizeof(set), &set);  // the thread that calls; one that may not be moved stays where it is
}

ThreadPool::ThreadPool(int n_threads, const std::vector<int>& processors) : active_(n_threads) {
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

void ThreadPool::take_pieces(int thread) {
  try {
    for (int64_t i = next_piece_.fetch_add(1); i < n_pieces_; i = next_piece_.fetch_add(1)) call_(body_, i, thread);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    next_piece_ = n_pieces_;
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
  n_pieces_ = n_pieces;
  next_piece_ = 0;
  busy_ = active_ - 1;
  generation_ = ((generation_.load() >> kThreadBits) + 1) << kThreadBits | static_cast<uint64_t>(active_);
  if (sleepers_.load() > 0) {
    { const std::lock_guard lock(mutex_); }
    wake_.notify_all();
  }
  take_pieces(0);
  // Others may be descheduled on a busy machine: spin first, then let them have the processor.
  for (int i = 0; busy_.load(std::memory_order_acquire) != 0; ++i) {
    if (i < kSpins) pause();
    else std::this_thread::yield();
  }
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

}  // namespace infer::cpu
