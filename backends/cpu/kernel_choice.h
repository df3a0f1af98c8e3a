// Some types have two GEMV kernels on a level: equal to the bit, but which one is faster depends on the processor's
// prefetchers. A KernelChoice measures both on this machine, once, and only for types that are used.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/kernel_table.h"

namespace infer::cpu {

class KernelChoice {
 public:
  // `table` must outlive the object. Threads of `options` read memory together, as they do while generating.
  KernelChoice(const KernelTable& table, const CpuOptions& options);

  // The kernel for a weight type and a number of tokens, nullptr where no matmul takes the type. The first call
  // for one token of a type with two GEMVs takes about ten milliseconds and 4 MiB per thread. Any thread. Throws
  // Error(kOutOfMemory).
  MatmulKernel matmul(DataType type, int64_t n_tokens);

 private:
  MatmulKernel measure_gemv(const MatmulKernels& kernels) const;

  struct Entry {
    std::once_flag once;
    MatmulKernel chosen = nullptr;
  };
  const KernelTable& table_;
  const CpuOptions options_;
  std::vector<std::unique_ptr<Entry>> entries_;  // as table_.matmuls
};

}  // namespace infer::cpu
