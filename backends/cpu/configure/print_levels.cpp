// For CMake: prints the instruction set levels that this machine runs, best last, with semicolons between them.
#include <cstdio>

#include "backends/cpu/processor_levels.cpp"  // try_run takes one source

int main() {
  const char* separator = "";
  for (const std::string& name : infer::cpu::processor_levels()) {
    std::printf("%s%s", separator, name.c_str());
    separator = ";";
  }
}
