// The instruction set levels that this machine runs, whatever is compiled in. Uses the standard library only: CMake
// compiles and runs it too, to find the level of a build for one machine.
#pragma once

#include <string>
#include <vector>

namespace infer::cpu {

// Their names, best last. "scalar" comes first and is always there.
std::vector<std::string> processor_levels();

}  // namespace infer::cpu
