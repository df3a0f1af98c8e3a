// Threads that run loops together. Between loops they spin briefly, then sleep. The calling thread takes part, so a
// pool of one has no threads of its own. Results never depend on the number of threads: pieces are independent.
//
// Thread t begins with the t-th part of the pieces, in order, so that it reads memory in order. When it has none left,
// it takes the last piece of the thread that has the most. So a slow or busy core delays a loop by at most one piece.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace infer::cpu {

// Pins the calling thread to one processor, if the system allows it.
void stay_on(int processor);

class ThreadPool {
 public:
  // REQUIRES at least 1 thread. Thread i is pinned to processors[i % processors.size()]; if empty, none is pinned. The
  // calling thread is never pinned.
  explicit ThreadPool(int n_threads, const std::vector<int>& processors = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }
  // From now on loops use the first n threads only, 1 <= n <= size(). Must not be called during run().
  void use_threads(int n) { active_ = n; }
  int active_threads() const { return active_; }
  // The first of the pieces that a thread begins with; they end before first_piece(thread + 1).
  int64_t first_piece(int64_t n_pieces, int thread) const { return n_pieces * thread / active_; }

  // Calls body(piece, thread) once for every piece in [0, n_pieces), on any thread (0 .. size() - 1), and returns when
  // all are done. Rethrows the first exception. One caller at a time. REQUIRES n_pieces < 2^31.
  template <typename Body>
  void run(int64_t n_pieces, const Body& body) {
    if (n_pieces <= 0) return;
    if (active_ == 1 || n_pieces == 1) {
      for (int64_t i = 0; i < n_pieces; ++i) body(i, 0);
      return;
    }
    dispatch(n_pieces, &body,
             [](const void* b, int64_t piece, int thread) { (*static_cast<const Body*>(b))(piece, thread); });
  }

 private:
  using Call = void (*)(const void* body, int64_t piece, int thread);
  // What is left of a thread's part: the next piece in the lower 32 bits, the end in the upper.
  struct alignas(64) Part {
    std::atomic<uint64_t> range{0};
    int64_t left() const;
    int64_t take_first();  // -1: none left
    int64_t take_last();
  };

  void dispatch(int64_t n_pieces, const void* body, Call call);
  void work(int thread);
  void take_pieces(int thread);
  int64_t take_from_others(int thread);

  std::vector<std::thread> workers_;
  // The loop in progress; written before generation_ is raised.
  const void* body_ = nullptr;
  Call call_ = nullptr;
  std::unique_ptr<Part[]> parts_;
  // The number of the loop in the upper bits, and its number of threads in the lower kThreadBits. They share one word
  // so that a thread that sleeps through a loop cannot combine its number with the next loop's number of threads.
  std::atomic<uint64_t> generation_{0};
  static constexpr int kThreadBits = 16;
  int active_ = 1;  // threads of the next loops
  std::atomic<int> busy_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<int> sleepers_{0};
  std::exception_ptr failure_;  // guarded by mutex_
};

}  // namespace infer::cpu
