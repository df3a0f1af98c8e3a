// Which instruction set levels this program has and this processor runs, and the one in use. INFER_CPU=NAME forces one.
#pragma once

#include <string>
#include <vector>

#include "backends/cpu/kernel_table.h"

namespace infer::cpu {

struct Level {
  const KernelTable* kernels;
  bool runs_here;  // the processor and the operating system support it
};

// The levels compiled in, best last.
const std::vector<Level>& levels();

// The level that INFER_CPU names, else the best that runs here. Throws Error(kInvalidArgument) when the name is unknown
// or does not run here, listing those that do.
const KernelTable& choose_kernels();
// As above for a given name; "" chooses the best.
const KernelTable& choose_kernels(const std::string& name);

std::string processor_name();

}  // namespace infer::cpu
