// Some types have two GEMV kernels on a level. They are bit-identical; which one is faster depends on the processor's
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
  // `table` must outlive the object. The measurement uses as many threads as generation does (`options`).
  KernelChoice(const KernelTable& table, const CpuOptions& options);

  // The kernel for a weight type and a number of tokens; nullptr if no matmul supports the type. The first call for
  // one token of a type with two GEMVs takes about 10 ms and 4 MiB per thread. May be called on any thread. Throws
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
