// The runtime API. Work is not done when it is queued but when somebody waits for it, in the order of its stream: that
// a program waits too little, or changes memory too early, shows in its results.
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cuda_runtime.h"
#include "tests/cuda_stand_in/device_memory.h"
#include "tests/cuda_stand_in/failure.h"
#include "tests/cuda_stand_in/grid.h"

namespace cuda_stand_in {
namespace {

using Work = std::function<void()>;

// All of the API is under one lock; kernels run under it too.
std::recursive_mutex lock;
using Guard = std::lock_guard<std::recursive_mutex>;

cudaError_t last_error = cudaSuccess;
std::string& failure = *new std::string;  // what a kernel did wrong; as on a GPU, nothing works afterwards

cudaError_t result(cudaError_t error) {
  if (!failure.empty()) error = cudaErrorIllegalAddress;
  if (error != cudaSuccess) last_error = error;
  return error;
}

std::map<const void*, size_t>& pinned() {
  static auto& memory = *new std::map<const void*, size_t>;  // outlives every static object of the program
  return memory;
}
bool is_pinned(const void* p) {
  auto next = pinned().upper_bound(p);
  if (next == pinned().begin()) return false;
  --next;
  return static_cast<const char*>(p) < static_cast<const char*>(next->first) + next->second;
}

}  // namespace
}  // namespace cuda_stand_in

using namespace cuda_stand_in;

struct CUstream_st {
  std::deque<Work> queue;
  bool capturing = false;
  std::vector<Work> captured;
  uint64_t queued = 0, done = 0;
};
struct CUevent_st {
  cudaStream_t stream = nullptr;
  uint64_t place = 0;  // in the stream's queue
  std::chrono::steady_clock::time_point time;
};
struct CUgraph_st {
  std::vector<Work> work;
};
struct CUgraphExec_st {
  std::vector<Work> work;
};

namespace cuda_stand_in {
namespace {

std::vector<cudaStream_t>& streams() {
  static auto& all = *new std::vector<cudaStream_t>;
  return all;
}

void drain(cudaStream_t stream, uint64_t until) {
  while (stream->done < until && !stream->queue.empty()) {
    const Work work = std::move(stream->queue.front());
    stream->queue.pop_front();
    if (failure.empty()) work();
    ++stream->done;
  }
}
void drain_all() {
  for (const cudaStream_t stream : streams()) drain(stream, UINT64_MAX);
}
bool alive(cudaStream_t stream) { return std::find(streams().begin(), streams().end(), stream) != streams().end(); }

cudaError_t queue(cudaStream_t stream, Work work) {
  if (!alive(stream)) return result(cudaErrorInvalidValue);
  if (stream->capturing) {
    stream->captured.push_back(std::move(work));
  } else {
    stream->queue.push_back(std::move(work));
    ++stream->queued;
  }
  return result(cudaSuccess);
}

bool is_device_range(const void* p, size_t bytes) { return is_allocated(p, bytes); }

}  // namespace

cudaError_t launch(const cudaLaunchConfig_t& config, std::shared_ptr<const BoundKernel> kernel) {
  const Guard guard(lock);
  return queue(config.stream, [config, kernel = std::move(kernel)] { failure = run_grid(config, *kernel); });
}

}  // namespace cuda_stand_in

// ---- Errors and devices ----

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    default:
      return "cudaErrorUnknown";
  }
}
const char* cudaGetErrorString(cudaError_t error) {
  const Guard guard(lock);
  if (error == cudaErrorIllegalAddress && !failure.empty()) return failure.c_str();
  return error == cudaErrorMemoryAllocation ? "out of memory" : cudaGetErrorName(error);
}
cudaError_t cudaGetLastError() {
  const Guard guard(lock);
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return failure.empty() ? error : cudaErrorIllegalAddress;
}
namespace cuda_stand_in {
std::string take_failure() {
  const Guard guard(lock);
  last_error = cudaSuccess;
  return std::exchange(failure, "");
}
}  // namespace cuda_stand_in

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  if (device != 0) return result(cudaErrorInvalidDevice);
  *p = {};
  std::strcpy(p->name, "stand-in");
  p->totalGlobalMem = memory_total();
  p->sharedMemPerBlock = 48 << 10;
  p->sharedMemPerBlockOptin = kMostShared;
  p->major = 8;
  p->minor = 0;
  p->multiProcessorCount = 4;
  p->l2CacheSize = 4 << 20;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : result(cudaErrorInvalidDevice); }
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  const Guard guard(lock);
  drain_all();
  return result(cudaSuccess);
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const Guard guard(lock);
  *free = memory_free();
  *total = memory_total();
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}

// ---- Memory ----

cudaError_t cudaMalloc(void** p, size_t bytes) {
  const Guard guard(lock);
  *p = allocate(bytes);
  return result(*p ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaFree(void* p) {
  const Guard guard(lock);
  if (!p) return cudaSuccess;
  drain_all();
  return result(release(p) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned) {
  const Guard guard(lock);
  *p = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!*p) return result(cudaErrorMemoryAllocation);
  std::memset(*p, 0xff, bytes);
  pinned()[*p] = bytes;
  return result(cudaSuccess);
}
cudaError_t cudaFreeHost(void* p) {
  const Guard guard(lock);
  if (!p) return cudaSuccess;
  drain_all();
  if (pinned().erase(p) == 0) return result(cudaErrorInvalidValue);
  std::free(p);
  return result(cudaSuccess);
}

// ---- Streams, events, graphs ----

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const Guard guard(lock);
  *stream = new CUstream_st;
  streams().push_back(*stream);
  return result(cudaSuccess);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Guard guard(lock);
  drain(stream, UINT64_MAX);
  std::erase(streams(), stream);
  delete stream;
  return result(cudaSuccess);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Guard guard(lock);
  drain(stream, UINT64_MAX);
  return result(cudaSuccess);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Guard guard(lock);
  const CUevent_st now = *event;  // later records do not count
  return queue(stream, [now] {
    if (now.stream && alive(now.stream)) drain(now.stream, now.place);
  });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Guard guard(lock);
  event->stream = stream;
  event->place = stream->queued;
  event->time = std::chrono::steady_clock::now();
  return result(cudaSuccess);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Guard guard(lock);
  const bool done = !event->stream || !alive(event->stream) || event->stream->done >= event->place;
  return failure.empty() && !done ? cudaErrorNotReady : result(cudaSuccess);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Guard guard(lock);
  if (event->stream && alive(event->stream)) drain(event->stream, event->place);
  event->time = std::chrono::steady_clock::now();
  return result(cudaSuccess);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return result(cudaSuccess);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const Guard guard(lock);
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (bytes == 0) return result(cudaSuccess);
  if ((to_device && !is_device_range(to, bytes)) || (from_device && !is_device_range(from, bytes))) {
    return result(cudaErrorInvalidValue);
  }
  if (!from_device && !is_pinned(from)) {  // staged by the driver before the call returns
    std::vector<char> copy(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
    return queue(stream, [to, copy = std::move(copy)] { std::memcpy(to, copy.data(), copy.size()); });
  }
  const cudaError_t queued = queue(stream, [to, from, bytes] { std::memmove(to, from, bytes); });
  if (from_device && !to_device && !is_pinned(to)) drain(stream, UINT64_MAX);
  return queued;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  const Guard guard(lock);
  if (!is_device_range(to, bytes)) return result(cudaErrorInvalidValue);
  return queue(stream, [=] { std::memset(to, value, bytes); });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const Guard guard(lock);
  if (stream->capturing) return result(cudaErrorInvalidValue);
  stream->capturing = true;
  return result(cudaSuccess);
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Guard guard(lock);
  if (!stream->capturing) return result(cudaErrorInvalidValue);
  stream->capturing = false;
  *graph = new CUgraph_st{std::exchange(stream->captured, {})};
  return result(cudaSuccess);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  *made = new CUgraphExec_st{graph->work};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  const Guard guard(lock);
  for (const Work& work : graph->work) queue(stream, work);
  return result(cudaSuccess);
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  const Guard guard(lock);
  delete graph;
  return cudaSuccess;
}
