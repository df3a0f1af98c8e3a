// Work of the stand-in is done late: who changes memory before a copy is done, or reads before waiting, sees it.
#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include <cstring>

namespace {

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

TEST_CASE("a copy from pinned memory reads it when somebody waits, and one to it writes it then") {
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

TEST_CASE("memory that is not the device's is refused") {
  Fixture f;
  char other[64];
  CHECK(cudaMemcpyAsync(other, f.host, 64, cudaMemcpyHostToDevice, f.stream) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyAsync(f.device, f.host, 65, cudaMemcpyHostToDevice, f.stream) == cudaErrorInvalidValue);
  CHECK(cudaFree(other) == cudaErrorInvalidValue);
  cudaGetLastError();
}
