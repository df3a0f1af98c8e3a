// On some levels a type has two kernels for one token, and likewise two for two tokens. Their results are
// bit-identical; which one is faster depends on the processor's prefetchers. A KernelChoice measures both with one
// token on this machine, once, and only for types that are used.
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
  // up to two tokens of a type with two kernels takes about 10 ms and 4 MiB per thread. May be called on any thread.
  // Throws Error(kOutOfMemory).
  MatmulKernel matmul(DataType type, int64_t n_tokens);

 private:
  bool other_is_faster(const MatmulKernels& kernels) const;

  struct Entry {
    std::once_flag once;
    bool takes_other = false;
  };
  const KernelTable& table_;
  const CpuOptions options_;
  std::vector<std::unique_ptr<Entry>> entries_;  // as table_.matmuls
};

}  // namespace infer::cpu
