// The stand-in does its work late: a test that changes memory before a copy is done, or reads before waiting, sees
// wrong values.
#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

// For all tests of this program, before the first call of the runtime.
const int kTwoDevices = setenv("INFER_CUDA_STAND_IN_DEVICES", "2", 1);

// Pinned memory, memory of the device and a stream.
struct Fixture {
  Fixture() {
    REQUIRE(cudaHostAlloc(&host, 64, cudaHostAllocDefault) == cudaSuccess);
    REQUIRE(cudaMalloc(&device, 64) == cudaSuccess);
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  }
  ~Fixture() {
    cudaStreamDestroy(stream);
    cudaFree(device);
    cudaFreeHost(host);
  }
  char first() const { return *static_cast<const char*>(host); }
  void fill(char c) { std::memset(host, c, 64); }

  void *host = nullptr, *device = nullptr;
  cudaStream_t stream = nullptr;
};

}  // namespace

TEST_CASE("a copy from or to pinned memory accesses it only when somebody waits") {
  Fixture f;
  f.fill('a');
  REQUIRE(cudaMemcpyAsync(f.device, f.host, 64, cudaMemcpyHostToDevice, f.stream) == cudaSuccess);
  f.fill('b');  // too early
  REQUIRE(cudaStreamSynchronize(f.stream) == cudaSuccess);
  f.fill('c');
  REQUIRE(cudaMemcpyAsync(f.host, f.device, 64, cudaMemcpyDeviceToHost, f.stream) == cudaSuccess);
  CHECK(f.first() == 'c');  // too early
  REQUIRE(cudaStreamSynchronize(f.stream) == cudaSuccess);
  CHECK(f.first() == 'b');
}

TEST_CASE("a copy from other memory reads it at once") {
  Fixture f;
  char other[64];
  std::memset(other, 'a', 64);
  REQUIRE(cudaMemcpyAsync(f.device, other, 64, cudaMemcpyHostToDevice, f.stream) == cudaSuccess);
  std::memset(other, 'b', 64);
  REQUIRE(cudaMemcpyAsync(f.host, f.device, 64, cudaMemcpyDeviceToHost, f.stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(f.stream) == cudaSuccess);
  CHECK(f.first() == 'a');
}

TEST_CASE("a stream that waits for an event sees what came before it, and not what came after") {
  Fixture f, g;
  cudaEvent_t event = nullptr;
  REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
  REQUIRE(cudaMemsetAsync(f.device, 'x', 64, f.stream) == cudaSuccess);
  REQUIRE(cudaEventRecord(event, f.stream) == cudaSuccess);
  REQUIRE(cudaMemsetAsync(f.device, 'y', 64, f.stream) == cudaSuccess);
  CHECK(cudaEventQuery(event) == cudaErrorNotReady);
  REQUIRE(cudaStreamWaitEvent(g.stream, event) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(g.host, f.device, 64, cudaMemcpyDeviceToHost, g.stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(g.stream) == cudaSuccess);
  CHECK(g.first() == 'x');
  CHECK(cudaEventQuery(event) == cudaSuccess);
  cudaEventDestroy(event);
}

TEST_CASE("captured work runs when its graph is launched, each time") {
  Fixture f;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  f.fill('a');
  REQUIRE(cudaStreamBeginCapture(f.stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(f.device, f.host, 64, cudaMemcpyHostToDevice, f.stream) == cudaSuccess);
  REQUIRE(cudaStreamEndCapture(f.stream, &graph) == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&exec, graph) == cudaSuccess);
  for (const char c : {'m', 'n'}) {
    f.fill(c);
    REQUIRE(cudaGraphLaunch(exec, f.stream) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(f.stream) == cudaSuccess);
    f.fill(0);
    REQUIRE(cudaMemcpyAsync(f.host, f.device, 64, cudaMemcpyDeviceToHost, f.stream) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(f.stream) == cudaSuccess);
    CHECK(f.first() == c);
  }
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
}

namespace {

void no_kernel(int) {}
void another_kernel(int) {}

template <typename Kernel>
cudaError_t start(Kernel kernel, cudaStream_t stream) {
  cudaLaunchConfig_t config = {};
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, 0);
}

// What the end of a capture says after a call.
template <typename Call>
cudaError_t capture_with(cudaStream_t stream, Call call) {
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  call();
  cudaGraph_t graph = nullptr;
  const cudaError_t error = cudaStreamEndCapture(stream, &graph);
  CHECK((graph != nullptr) == (error == cudaSuccess));
  cudaGraphDestroy(graph);
  return error;
}

}  // namespace

TEST_CASE("what a capture does not allow ends it") {
  Fixture f, g;
  cudaEvent_t event = nullptr;
  REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
  const auto with = [&](auto call) { return capture_with(f.stream, call); };
  CHECK(with([] {}) == cudaSuccess);
  CHECK(with([&] { CHECK(cudaEventRecord(event, g.stream) == cudaSuccess); }) == cudaSuccess);
  CHECK(with([&] { cudaEventRecord(event, f.stream); }) == cudaErrorStreamCaptureInvalidated);
  CHECK(with([&] { CHECK(cudaStreamSynchronize(f.stream) == cudaErrorStreamCaptureUnsupported); }) ==
        cudaErrorStreamCaptureInvalidated);
  void* p = nullptr;
  CHECK(with([&] { CHECK(cudaMalloc(&p, 1) != cudaSuccess); }) == cudaErrorStreamCaptureInvalidated);
  CHECK(with([&] { CHECK(cudaHostAlloc(&p, 1, 0) != cudaSuccess); }) == cudaErrorStreamCaptureInvalidated);
  CHECK(with([&] { CHECK(cudaFree(f.device) != cudaSuccess); }) == cudaErrorStreamCaptureInvalidated);
  CHECK(with([&] { CHECK(cudaFreeHost(f.host) != cudaSuccess); }) == cudaErrorStreamCaptureInvalidated);
  // Another thread may.
  CHECK(with([&] { std::thread([&] { CHECK(cudaMalloc(&p, 1) == cudaSuccess); }).join(); }) == cudaSuccess);
  cudaFree(p);
  // A kernel has to be loaded before, which its first launch does.
  CHECK(with([&] { CHECK(start(no_kernel, f.stream) == cudaErrorStreamCaptureUnsupported); }) ==
        cudaErrorStreamCaptureInvalidated);
  cudaFuncAttributes attributes = {};
  CHECK(cudaFuncGetAttributes(&attributes, another_kernel) == cudaSuccess);
  CHECK(with([&] { CHECK(start(another_kernel, f.stream) == cudaSuccess); }) == cudaSuccess);
  cudaEventDestroy(event);
}

TEST_CASE("pinned memory that goes away under a copy loses its bytes") {
  Fixture f;
  void* other = nullptr;
  REQUIRE(cudaHostAlloc(&other, 64, cudaHostAllocDefault) == cudaSuccess);
  std::memset(other, 'a', 64);
  REQUIRE(cudaMemcpyAsync(f.device, other, 64, cudaMemcpyHostToDevice, f.stream) == cudaSuccess);
  REQUIRE(cudaFreeHost(other) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(f.host, f.device, 64, cudaMemcpyDeviceToHost, f.stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(f.stream) == cudaSuccess);
  CHECK(f.first() == '\xff');
}

namespace {

// The second device, while it lives.
struct OnSecond {
  OnSecond() { REQUIRE(cudaSetDevice(1) == cudaSuccess); }
  ~OnSecond() { cudaSetDevice(0); }
};

// Memory of a pool, and a stream for its allocations.
struct Pool {
  Pool() {
    cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    REQUIRE(cudaMemPoolCreate(&pool, &props) == cudaSuccess);
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  }
  ~Pool() {
    cudaStreamDestroy(stream);
    CHECK(cudaMemPoolDestroy(pool) == cudaSuccess);
  }
  void* allocate(size_t bytes) {
    void* p = nullptr;
    REQUIRE(cudaMallocFromPoolAsync(&p, bytes, pool, stream) == cudaSuccess);
    return p;
  }
  cudaMemPool_t pool = nullptr;
  cudaStream_t stream = nullptr;
};

}  // namespace

TEST_CASE("copies between devices name both, and wait for events of the other device") {
  REQUIRE(kTwoDevices == 0);
  Fixture first;
  const OnSecond on_second;
  Fixture second;
  cudaEvent_t event = nullptr;
  cudaSetDevice(0);
  REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
  REQUIRE(cudaMemsetAsync(first.device, 'x', 64, first.stream) == cudaSuccess);
  REQUIRE(cudaEventRecord(event, first.stream) == cudaSuccess);
  CHECK(cudaEventRecord(event, second.stream) == cudaErrorInvalidResourceHandle);
  cudaSetDevice(1);
  REQUIRE(cudaStreamWaitEvent(second.stream, event) == cudaSuccess);
  CHECK(cudaMemcpyAsync(second.device, first.device, 64, cudaMemcpyDeviceToDevice, second.stream) ==
        cudaErrorInvalidValue);
  CHECK(cudaMemcpyPeerAsync(second.device, 0, first.device, 1, 64, second.stream) == cudaErrorInvalidValue);
  REQUIRE(cudaMemcpyPeerAsync(second.device, 1, first.device, 0, 64, second.stream) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(second.host, second.device, 64, cudaMemcpyDeviceToHost, second.stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(second.stream) == cudaSuccess);
  CHECK(second.first() == 'x');
  cudaEventDestroy(event);
  cudaGetLastError();
}

TEST_CASE("a graph runs on the device of its stream only") {
  Fixture f;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaStreamBeginCapture(f.stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  REQUIRE(cudaMemsetAsync(f.device, 'x', 64, f.stream) == cudaSuccess);
  REQUIRE(cudaStreamEndCapture(f.stream, &graph) == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&exec, graph) == cudaSuccess);
  {
    const OnSecond on_second;
    CHECK(cudaGraphLaunch(exec, f.stream) == cudaErrorInvalidResourceHandle);
  }
  CHECK(cudaGraphLaunch(exec, f.stream) == cudaSuccess);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaGetLastError();
}

TEST_CASE("memory of a pool is free when its stream arrives there") {
  Pool pool;
  size_t before = 0, during = 0, after = 0, total = 0;
  cudaMemGetInfo(&before, &total);
  void* const p = pool.allocate(1 << 20);
  CHECK(cudaMemPoolDestroy(pool.pool) == cudaErrorInvalidValue);  // has an allocation
  cudaGetLastError();
  REQUIRE(cudaFreeAsync(p, pool.stream) == cudaSuccess);
  cudaMemGetInfo(&during, &total);
  REQUIRE(cudaStreamSynchronize(pool.stream) == cudaSuccess);
  cudaMemGetInfo(&after, &total);
  CHECK((before == after && during == before - (1 << 20)));
  CHECK(cudaMemsetAsync(p, 'x', 64, pool.stream) == cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST_CASE("memory that is not the device's is refused") {
  Fixture f;
  char other[64];
  CHECK(cudaMemcpyAsync(other, f.host, 64, cudaMemcpyHostToDevice, f.stream) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyAsync(f.device, f.host, 65, cudaMemcpyHostToDevice, f.stream) == cudaErrorInvalidValue);
  CHECK(cudaFree(other) == cudaErrorInvalidValue);
  cudaGetLastError();
}
