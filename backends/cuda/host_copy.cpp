#include "backends/cuda/host_copy.h"

#include <algorithm>
#include <cstring>
#include <system_error>

namespace infer::cuda {

HostCopy::HostCopy(int n_threads) {
  try {
    for (int t = 1; t < n_threads; ++t) threads_.emplace_back([this, t] { work(t); });
  } catch (const std::system_error&) {  // fewer threads suffice
  }
  n_threads_ = static_cast<int>(threads_.size()) + 1;
}

HostCopy::~HostCopy() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  begins_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void HostCopy::copy_part(const Job& job, int thread) const {
  constexpr size_t kPage = 4096;
  const size_t n = static_cast<size_t>(n_threads_), part = (job.bytes / n / kPage + 1) * kPage;
  const size_t begin = std::min(job.bytes, part * static_cast<size_t>(thread));
  const size_t bytes = std::min(part, job.bytes - begin);
  if (bytes > 0) std::memcpy(job.to + begin, job.from + begin, bytes);
}

void HostCopy::work(int thread) {
  std::unique_lock lock(mutex_);
  for (uint64_t done = 0;;) {
    begins_.wait(lock, [&] { return stopped_ || n_jobs_ > done; });
    if (stopped_) return;
    done = n_jobs_;
    const Job job = job_;
    lock.unlock();
    copy_part(job, thread);
    lock.lock();
    if (--working_ == 0) ends_.notify_one();
  }
}

void HostCopy::copy(std::byte* to, const std::byte* from, size_t bytes) {
  const Job job = {to, from, bytes};
  {
    const std::lock_guard lock(mutex_);
    job_ = job;
    ++n_jobs_;
    working_ = n_threads_ - 1;
  }
  begins_.notify_all();
  copy_part(job, 0);
  std::unique_lock lock(mutex_);
  ends_.wait(lock, [&] { return working_ == 0; });
}

}  // namespace infer::cuda
