// What the files of the runtime API share.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cuda_runtime.h"

namespace cuda_stand_in {

// All of the API is under one lock; kernels run under it too.
extern std::recursive_mutex lock;
using Guard = std::lock_guard<std::recursive_mutex>;

// Records an error, and returns it. After a kernel has failed, the result of every call is that failure.
cudaError_t result(cudaError_t error);
bool has_failed();
void set_failure(cudaError_t error, const std::string& what);
// The device that the calling thread has chosen.
int current_device();
// Whether this allocation is the one that has to fail (settings.h).
bool fails_now();

using Work = std::function<void()>;

}  // namespace cuda_stand_in

struct CUstream_st {
  int device = 0;
  std::deque<cuda_stand_in::Work> queue;
  bool capturing = false;
  bool capture_broken = false;  // by a call that does not belong there
  std::thread::id capturing_thread;
  std::vector<cuda_stand_in::Work> captured;
  uint64_t queued = 0, done = 0;
};

namespace cuda_stand_in {

bool alive(cudaStream_t stream);
cudaError_t queue(cudaStream_t stream, Work work);
void drain(cudaStream_t stream, uint64_t until = UINT64_MAX);
void drain_all();

}  // namespace cuda_stand_in
