// The runtime API: memory, streams and graphs. Work is not done when it is queued but when somebody waits for it, in
// the order of its stream: that a program waits too little, or changes memory too early, shows in its results.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cuda_runtime.h"
#include "tests/cuda_stand_in/counts.h"
#include "tests/cuda_stand_in/device_memory.h"
#include "tests/cuda_stand_in/grid.h"
#include "tests/cuda_stand_in/settings.h"
#include "tests/cuda_stand_in/state.h"

using namespace cuda_stand_in;

struct CUevent_st {
  int device = 0;
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
struct CUmemPoolHandle_st {
  int device = 0;
  size_t used = 0;  // bytes
};

namespace cuda_stand_in {
namespace {

Counts counted;

// These outlive every static object of the program.
std::map<const void*, size_t>& pinned() {
  static auto& memory = *new std::map<const void*, size_t>;
  return memory;
}
std::vector<cudaStream_t>& streams() {
  static auto& all = *new std::vector<cudaStream_t>;
  return all;
}
struct PoolPiece {
  cudaMemPool_t pool;
  size_t bytes;
};
std::map<const void*, PoolPiece>& pool_pieces() {
  static auto& pieces = *new std::map<const void*, PoolPiece>;
  return pieces;
}
bool is_pinned(const void* p) {
  auto next = pinned().upper_bound(p);
  if (next == pinned().begin()) return false;
  --next;
  return static_cast<const char*>(p) < static_cast<const char*>(next->first) + next->second;
}
bool is_device_range(const void* p, size_t bytes) { return owner(p, bytes) >= 0; }

// Pinned memory that was freed while work was queued that may use it. It holds bytes of 0xff.
std::vector<void*>& freed_early() {
  static auto& memory = *new std::vector<void*>;
  return memory;
}
bool is_idle(cudaStream_t stream) { return stream->queue.empty(); }

// Kernels that are loaded, on each device. Loading one allocates, so it must not happen during a capture: drivers
// before 12.3 do not allow it.
std::set<std::pair<int, const void*>>& loaded() {
  static auto& kernels = *new std::set<std::pair<int, const void*>>;
  return kernels;
}

// Whether the calling thread captures a stream, which this call then breaks.
bool breaks_capture() {
  bool any = false;
  for (const cudaStream_t stream : streams()) {
    if (!stream->capturing || stream->capturing_thread != std::this_thread::get_id()) continue;
    any = stream->capture_broken = true;
  }
  return any;
}
// Whether the stream is being captured, which waiting for it or for an event of it breaks.
bool breaks_capture(cudaStream_t stream) {
  if (alive(stream) && stream->capturing) stream->capture_broken = true;
  return alive(stream) && stream->capturing;
}

// Whether the program has code for the simulated compute capability.
bool has_code() { return settings().major * 10 + settings().minor >= 75; }

void run_kernel(const cudaLaunchConfig_t& config, const BoundKernel& kernel, int device) {
  static int64_t n_kernels = 0;
  if (++n_kernels == settings().lost) {
    std::fprintf(stderr, "cuda stand-in: kernel %lld loses the device\n", static_cast<long long>(n_kernels));
    return set_failure(cudaErrorLaunchFailure, "unspecified launch failure");
  }
  const std::string wrong = run_grid(config, kernel, device);
  if (!wrong.empty()) set_failure(cudaErrorIllegalAddress, wrong);
}

}  // namespace

bool alive(cudaStream_t stream) { return std::find(streams().begin(), streams().end(), stream) != streams().end(); }

void drain(cudaStream_t stream, uint64_t until) {
  while (stream->done < until && !stream->queue.empty()) {
    const Work work = std::move(stream->queue.front());
    stream->queue.pop_front();
    if (!has_failed()) work();
    ++stream->done;
  }
}
void drain_all() {
  for (const cudaStream_t stream : streams()) drain(stream);
}

Counts counts() {
  const Guard guard(lock);
  return counted;
}

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

cudaError_t load(const void* code) {
  const Guard guard(lock);
  if (!has_code()) return result(cudaErrorNoKernelImageForDevice);
  if (!loaded().insert({current_device(), code}).second) return result(cudaSuccess);
  return result(breaks_capture() ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
}

cudaError_t launch(const cudaLaunchConfig_t& config, const void* code, std::shared_ptr<const BoundKernel> kernel) {
  const Guard guard(lock);
  if (const cudaError_t error = load(code); error != cudaSuccess) return error;
  if (alive(config.stream) && config.stream->device != current_device()) return result(cudaErrorInvalidResourceHandle);
  return queue(config.stream,
               [config, kernel = std::move(kernel)] { run_kernel(config, *kernel, config.stream->device); });
}

}  // namespace cuda_stand_in

// ---- Memory ----

cudaError_t cudaMalloc(void** p, size_t bytes) {
  const Guard guard(lock);
  if (breaks_capture()) return result(cudaErrorStreamCaptureUnsupported);
  *p = fails_now() ? nullptr : allocate(bytes, current_device());
  return result(*p ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaFree(void* p) {
  const Guard guard(lock);
  if (!p) return result(cudaSuccess);
  if (breaks_capture()) return result(cudaErrorStreamCaptureUnsupported);
  drain_all();
  return result(release(p) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned) {
  const Guard guard(lock);
  if (breaks_capture()) return result(cudaErrorStreamCaptureUnsupported);
  *p = fails_now() ? nullptr : std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!*p) return result(cudaErrorMemoryAllocation);
  std::memset(*p, 0xff, bytes);
  pinned()[*p] = bytes;
  return result(cudaSuccess);
}
cudaError_t cudaFreeHost(void* p) {
  const Guard guard(lock);
  if (!p) return cudaSuccess;
  if (breaks_capture()) return result(cudaErrorStreamCaptureUnsupported);
  const auto found = pinned().find(p);
  if (found == pinned().end()) return result(cudaErrorInvalidValue);
  std::memset(p, 0xff, found->second);  // it does not wait
  pinned().erase(found);
  freed_early().push_back(p);
  if (std::all_of(streams().begin(), streams().end(), is_idle)) {
    for (void* memory : std::exchange(freed_early(), {})) std::free(memory);
  }
  return result(cudaSuccess);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* props) {
  const Guard guard(lock);
  if (!settings().pools) return result(cudaErrorNotSupported);
  *pool = new CUmemPoolHandle_st{props->location.id};
  return result(cudaSuccess);
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  const Guard guard(lock);
  const bool in_use = pool->used > 0;
  if (!in_use) delete pool;
  return result(in_use ? cudaErrorInvalidValue : cudaSuccess);
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* access, size_t) {
  return result(access->location.id == pool->device ? cudaErrorInvalidValue : cudaSuccess);
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr, void* value) {
  const Guard guard(lock);
  *static_cast<uint64_t*>(value) = pool->used;  // the pool keeps nothing
  return result(cudaSuccess);
}
cudaError_t cudaMallocFromPoolAsync(void** p, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  const Guard guard(lock);
  if (!alive(stream) || stream->device != pool->device) return result(cudaErrorInvalidResourceHandle);
  drain(stream);  // memory that was freed before may be used again
  *p = fails_now() ? nullptr : allocate(bytes, pool->device);
  if (!*p) return result(cudaErrorMemoryAllocation);
  pool->used += bytes;
  pool_pieces()[*p] = {pool, bytes};
  return result(cudaSuccess);
}
cudaError_t cudaFreeAsync(void* p, cudaStream_t stream) {
  const Guard guard(lock);
  if (pool_pieces().count(p) == 0) return result(cudaErrorInvalidValue);
  return queue(stream, [p] {
    const auto piece = pool_pieces().find(p);
    piece->second.pool->used -= piece->second.bytes;
    pool_pieces().erase(piece);
    release(p);
  });
}

// ---- Streams, events, graphs ----

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const Guard guard(lock);
  *stream = new CUstream_st;
  (*stream)->device = current_device();
  streams().push_back(*stream);
  return result(cudaSuccess);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Guard guard(lock);
  drain(stream);
  std::erase(streams(), stream);
  delete stream;
  return result(cudaSuccess);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Guard guard(lock);
  if (breaks_capture(stream)) return result(cudaErrorStreamCaptureUnsupported);
  counted.waits += stream->done < stream->queued;
  drain(stream);
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
  (*event)->device = current_device();
  return result(cudaSuccess);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Guard guard(lock);
  if (event->device != stream->device) return result(cudaErrorInvalidResourceHandle);
  // On a GPU, the event and whatever waits for it would become part of the graph.
  if (breaks_capture(stream)) return result(cudaSuccess);
  event->stream = stream;
  event->place = stream->queued;
  event->time = std::chrono::steady_clock::now();
  return result(cudaSuccess);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Guard guard(lock);
  const bool done = !event->stream || !alive(event->stream) || event->stream->done >= event->place;
  return !has_failed() && !done ? cudaErrorNotReady : result(cudaSuccess);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Guard guard(lock);
  if (event->stream && alive(event->stream)) {
    counted.waits += event->stream->done < event->place;
    drain(event->stream, event->place);
  }
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
  if (to_device && from_device && owner(to, bytes) != owner(from, bytes)) return result(cudaErrorInvalidValue);
  if (!from_device && !is_pinned(from)) {  // staged by the driver before the call returns
    std::vector<char> copy(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
    return queue(stream, [to, copy = std::move(copy)] { std::memcpy(to, copy.data(), copy.size()); });
  }
  const cudaError_t queued = queue(stream, [to, from, bytes] { std::memmove(to, from, bytes); });
  if (from_device && !to_device && !is_pinned(to)) drain(stream);
  return queued;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t stream) {
  const Guard guard(lock);
  if (owner(to, bytes) != to_device || owner(from, bytes) != from_device) return result(cudaErrorInvalidValue);
  ++counted.peer_copies;
  return queue(stream, [to, from, bytes] { std::memmove(to, from, bytes); });
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
  stream->capture_broken = false;
  stream->capturing_thread = std::this_thread::get_id();
  return result(cudaSuccess);
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Guard guard(lock);
  if (!stream->capturing) return result(cudaErrorInvalidValue);
  stream->capturing = false;
  *graph = nullptr;
  if (stream->capture_broken) {
    stream->captured.clear();
    return result(cudaErrorStreamCaptureInvalidated);
  }
  *graph = new CUgraph_st{std::exchange(stream->captured, {})};
  return result(cudaSuccess);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  const Guard guard(lock);
  *made = new CUgraphExec_st{graph->work};
  ++counted.graphs;
  ++counted.live_graphs;
  return result(cudaSuccess);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  const Guard guard(lock);
  if (stream->device != current_device()) return result(cudaErrorInvalidResourceHandle);
  for (const Work& work : graph->work) queue(stream, work);
  return result(cudaSuccess);
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  const Guard guard(lock);
  --counted.live_graphs;
  delete graph;
  return cudaSuccess;
}
