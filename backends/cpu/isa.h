// The instruction set levels that are compiled in, those that this processor runs, and the one in use. INFER_CPU=NAME
// forces one.
#pragma once

#include <string>
#include <vector>

#include "backends/cpu/kernel_table.h"

namespace infer::cpu {

struct Level {
  const KernelTable* kernels;
  bool runs_here;  // the processor and the operating system support it
};

// The levels that are compiled in, best last.
const std::vector<Level>& levels();

// The level named by INFER_CPU, else the best that runs here. Throws Error(kInvalidArgument), listing the levels that
// run here, when the name is not one of them.
const KernelTable& choose_kernels();
// As above for a given name; "" chooses the best.
const KernelTable& choose_kernels(const std::string& name);

std::string processor_name();

}  // namespace infer::cpu
