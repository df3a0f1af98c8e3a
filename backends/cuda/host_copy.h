// Copies large pieces of host memory with several threads. A single thread is slower than a fast bus to a GPU, above
// all when it reads a mapped file for the first time.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace infer::cuda {

// One thread at a time. Its own threads sleep between copies, and end with it.
class HostCopy {
 public:
  explicit HostCopy(int n_threads);  // including the caller; fewer if the system refuses more
  ~HostCopy();
  HostCopy(const HostCopy&) = delete;
  HostCopy& operator=(const HostCopy&) = delete;

  void copy(std::byte* to, const std::byte* from, size_t bytes);  // returns when all is copied

 private:
  struct Job {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    size_t bytes = 0;
  };
  void copy_part(const Job& job, int thread) const;
  void work(int thread);

  int n_threads_ = 1;  // constant after construction
  std::vector<std::thread> threads_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable begins_, ends_;
  Job job_;
  uint64_t n_jobs_ = 0;
  int working_ = 0;
  bool stopped_ = false;
};

}  // namespace infer::cuda
