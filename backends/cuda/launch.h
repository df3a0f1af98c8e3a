// Launches kernels on a stream. For .cu files.
#pragma once

#include <cstdint>

#include "backends/cuda/stream.h"
#include "ggml-like/error.h"

namespace infer::cuda {

inline constexpr int64_t kMostBlocksY = 65535;  // of a grid, also in z

inline constexpr size_t kMostShared = 48 << 10;  // bytes of shared memory of a block on any GPU

struct LaunchShape {
  dim3 grid;
  unsigned threads;         // of a block
  size_t shared_bytes = 0;  // of dynamic shared memory; with the kernel's own at most kMostShared
};

// Queues kernel(arguments...); nothing if the grid is empty. Before a capture, only loads the kernel.
template <typename... Parameters, typename... Arguments>
void launch_kernel(CudaStream& stream, const LaunchShape& shape, void (*kernel)(Parameters...),
                   Arguments&&... arguments) {
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;
  CHECK_INTERNAL(shape.grid.y <= kMostBlocksY && shape.grid.z <= kMostBlocksY);
  if (stream.is_loading()) {
    cudaFuncAttributes found = {};
    stream.context().check(cudaFuncGetAttributes(&found, kernel), "loading a kernel");
    CHECK_INTERNAL(static_cast<int>(shape.threads) <= found.maxThreadsPerBlock);
    CHECK_INTERNAL(found.sharedSizeBytes + shape.shared_bytes <= kMostShared);
    return;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = dim3(shape.threads);
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream.handle();
  stream.context().check(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), "cudaLaunchKernelEx");
}

// The number of blocks of `per_block` items that cover `items`.
inline unsigned blocks_for(int64_t items, int64_t per_block) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

}  // namespace infer::cuda
