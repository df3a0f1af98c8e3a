// Threads that share loops. Between loops they spin briefly, then sleep. The calling thread takes part, so a pool of
// one has no threads of its own. Results never depend on the number of threads: pieces are independent.
//
// Thread t begins with the t-th part of the pieces, in order, so that it reads memory in order; when it has none left
// it takes the last piece of the thread that has most. A core that is slower, or busy with something else, is left
// behind by no more than a piece.
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

// Keeps the calling thread on one processor, if the system lets it.
void stay_on(int processor);

class ThreadPool {
 public:
  // REQUIRES at least 1 thread. Thread i stays on processor processors[i % processors.size()]; none given: anywhere.
  // The calling thread is not moved.
  explicit ThreadPool(int n_threads, const std::vector<int>& processors = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }
  // Loops from now on use the first n threads only, 1 <= n <= size(). Not during run().
  void use_threads(int n) { active_ = n; }
  int active_threads() const { return active_; }
  // The first of the pieces that a thread begins with; its last is before the first of thread + 1.
  int64_t first_piece(int64_t n_pieces, int thread) const { return n_pieces * thread / active_; }

  // Calls body(piece, thread) for every piece in [0, n_pieces), each once, on any thread (0 .. size() - 1). Returns
  // when all are done; the first exception thrown is thrown again here. One caller at a time. REQUIRES n_pieces < 2^31.
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
  // What is left of a thread's part: the next piece in the lower half, the end in the upper.
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
  // The number of the loop in its upper bits and the threads that take part in it in the lower kThreadBits: one word,
  // so that a thread that sleeps through a loop can not take the next one's number of threads for its own.
  std::atomic<uint64_t> generation_{0};
  static constexpr int kThreadBits = 16;
  int active_ = 1;  // of the loops to come
  std::atomic<int> busy_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<int> sleepers_{0};
  std::exception_ptr failure_;  // guarded by mutex_
};

}  // namespace infer::cpu
