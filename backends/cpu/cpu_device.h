// The CPU as a device: weights are read from the mapped file, loops run on a thread pool, and kernels are those of the
// instruction set level chosen at creation. Results have the same bits on every level and for any number of threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ggml-like/backend.h"

namespace infer {

struct CpuOptions {
  // Which GEMV kernel is used for a type that has two on a level; the results are bit-identical.
  enum class Kernels { kFaster, kDefault, kOther };

  int n_threads = 0;                   // 0: physical cores this process may use
  std::string level;                   // "": the level in INFER_CPU, else the best one that the processor supports
  int n_threads_batch = 0;             // for steps that compute more tokens than sequences; 0: n_threads
  std::vector<int> processors = {};    // thread i is pinned to processors[i % size]; empty: not pinned
  Kernels kernels = Kernels::kFaster;  // measured when the first weight of the type is prepared
};

std::unique_ptr<Device> create_cpu_device(const CpuOptions& options = {});

// Levels that are compiled in and run on this machine, weakest first: "scalar", "avx2", ...
std::vector<std::string> cpu_levels();
// The number of physical cores that this process may run on.
int physical_cores();

}  // namespace infer
