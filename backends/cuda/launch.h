// Launches kernels on a stream. For .cu files.
#pragma once

#include <cstdint>

#include "backends/cuda/stream.h"

namespace infer::cuda {

inline constexpr int64_t kMostBlocksY = 65535;  // of a grid, also in z

struct LaunchShape {
  dim3 grid;
  unsigned threads;         // of a block
  size_t shared_bytes = 0;  // of dynamic shared memory, at most 48 KiB
};

// Queues kernel(arguments...); nothing if the grid is empty.
template <typename... Parameters, typename... Arguments>
void launch_kernel(CudaStream& stream, const LaunchShape& shape, void (*kernel)(Parameters...),
                   Arguments&&... arguments) {
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;
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
