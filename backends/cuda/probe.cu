#include "backends/cuda/probe.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include "backends/cuda/kernel.h"
#include "backends/cuda/launch.h"
#include "ggml-like/error.h"

namespace infer::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr size_t kMostBytes = size_t{1} << 30;  // of one pass
constexpr double kReadSeconds = 2e-3, kMatrixSeconds = 5e-3;
constexpr unsigned kLoads = 4;
constexpr int kLaunches = 4;  // of one pass, to hide the time of starting one
constexpr int kPasses = 5, kMostRounds = 1 << 20;
constexpr int kTiles = 8;  // of a warp, so that no multiplication waits for another

// Reads all of `data`, whose size is a multiple of four strides, with four loads in flight at a time. The sum keeps the
// compiler from removing them.
__global__ void read_all(const uint4* data, uint64_t n, unsigned* sums) {
  const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  unsigned sum = 0;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += kLoads * stride) {
    uint4 vectors[kLoads];
    for (unsigned k = 0; k < kLoads; ++k) vectors[k] = data[i + k * stride];
    for (unsigned k = 0; k < kLoads; ++k) sum += vectors[k].x ^ vectors[k].y ^ vectors[k].z ^ vectors[k].w;
  }
  if (sum == 0x9e3779b9u) sums[0] = sum;
}

__global__ void multiply_matrices(int rounds, float* sums) {
  const uint32_t one = pack_halves(1.0f, 1.0f), few = pack_halves(0.5f, 0.25f);
  const uint32_t a[4] = {one, few, one, few}, b[2] = {few, one};
  float c[kTiles][4] = {};
  for (int r = 0; r < rounds; ++r) {
    for (int tile = 0; tile < kTiles; ++tile) multiply_add(c[tile], a, b);
  }
  float sum = 0;
  for (int tile = 0; tile < kTiles; ++tile) sum += c[tile][0] + c[tile][1] + c[tile][2] + c[tile][3];
  if (sum < 0) sums[0] = sum;
}

double seconds_of(CudaStream& stream, const std::function<void()>& queue) {
  stream.synchronize();
  const auto start = std::chrono::steady_clock::now();
  queue();
  stream.synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

double probe_read(Context& context) try {
  const unsigned blocks = static_cast<unsigned>(context.properties.multiProcessorCount) * 8;
  const size_t piece = size_t{blocks} * kThreads * kLoads * sizeof(uint4);
  const size_t most = std::min<size_t>(kMostBytes, memory_state(context).free / 4) / piece * piece;
  if (most == 0) return 0;
  const UseDevice use(context.number);
  const CudaBuffer data(context, most, CudaBuffer::Kind::kDevice), sums(context, 4, CudaBuffer::Kind::kDevice);
  CudaStream stream(context);
  const auto pass = [&](size_t bytes) {
    const double seconds = seconds_of(stream, [&] {
      for (int i = 0; i < kLaunches; ++i) {
        launch_kernel(stream, {dim3(blocks), kThreads}, read_all, reinterpret_cast<const uint4*>(data.data()),
                      bytes / sizeof(uint4), reinterpret_cast<unsigned*>(sums.data()));
      }
    });
    return seconds / kLaunches;
  };
  // Raises the size until a pass takes long enough: it must exceed any GPU's cache, but not take forever on a slow GPU.
  size_t bytes = std::min(most, piece);
  while (bytes < most && pass(bytes) < kReadSeconds) bytes = std::min(most, bytes * 4);
  double best = 0;
  for (int i = 0; i < kPasses; ++i) best = std::max(best, static_cast<double>(bytes) / pass(bytes));
  return best;
} catch (const Error& error) {
  if (error.code() != ErrorCode::kOutOfMemory) throw;
  return 0;
}

double probe_matrices(Context& context) try {
  const UseDevice use(context.number);
  const CudaBuffer sums(context, 4, CudaBuffer::Kind::kDevice);
  CudaStream stream(context);
  const unsigned blocks = static_cast<unsigned>(context.properties.multiProcessorCount) * 4;
  const auto pass = [&](int rounds) {
    return seconds_of(stream, [&] {
      launch_kernel(stream, {dim3(blocks), kThreads}, multiply_matrices, rounds, reinterpret_cast<float*>(sums.data()));
    });
  };
  int rounds = 1;
  while (rounds < kMostRounds && pass(rounds) < kMatrixSeconds) rounds *= 4;
  const double warps = static_cast<double>(blocks) * kThreads / kWarp;
  const double operations = warps * rounds * kTiles * 2.0 * 16 * 8 * 16;
  double best = 0;
  for (int i = 0; i < kPasses; ++i) best = std::max(best, operations / pass(rounds));
  return best;
} catch (const Error& error) {
  if (error.code() != ErrorCode::kOutOfMemory) throw;
  return 0;
}

}  // namespace infer::cuda
