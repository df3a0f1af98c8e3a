// The CPU as a device: weights are read where the file is mapped, loops run on a thread pool, kernels are those of the
// instruction set level chosen at creation. Results are the same bits on every level and for any number of threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ggml-like/backend.h"

namespace infer {

struct CpuOptions {
  // Which kernel serves a type that has two on a level; results are equal to the bit.
  enum class Kernels { kFaster, kDefault, kOther };

  int n_threads = 0;                   // 0: physical cores this process may use
  std::string level;                   // "" : INFER_CPU, else the best the processor has
  int n_threads_batch = 0;             // of steps that compute more tokens than sequences; 0: n_threads
  std::vector<int> processors = {};    // that the threads stay on, in turn; none: anywhere
  Kernels kernels = Kernels::kFaster;  // as measured when the first of its weights is prepared
};

std::unique_ptr<Device> create_cpu_device(const CpuOptions& options = {});

// Levels that this program has and this machine runs, weakest first: "scalar", "avx2", ...
std::vector<std::string> cpu_levels();
// Physical cores this process may run on.
int physical_cores();

}  // namespace infer
