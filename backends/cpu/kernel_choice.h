// Some types have two matmul kernels on a level: equal to the bit, but which one is faster with a single token depends
// on the processor's prefetchers. A KernelChoice measures both on this machine, once, and only for types that are used.
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

  // The kernel of a type, nullptr when the level has none. The first call for a type with two kernels takes about ten
  // milliseconds and 4 MiB per thread. Any thread. Throws Error(kOutOfMemory).
  ProductKernel product(DataType type);

 private:
  ProductKernel measure(const TypeKernel& kernels) const;

  struct Entry {
    std::once_flag once;
    ProductKernel chosen = nullptr;
  };
  const KernelTable& table_;
  const CpuOptions options_;
  std::vector<std::unique_ptr<Entry>> entries_;  // as table_.products
};

}  // namespace infer::cpu
