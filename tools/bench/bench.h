// infer bench: speed of prompts and of generation at several batch sizes, as a share of what this machine can do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/flags.h"

namespace infer {

struct BenchOptions {
  ModelFlags model;                      // the file may be "" when there is a shape
  std::string shape;                     // a well-known shape with random weights instead of a file
  std::string type = "Q4_K_M";           // of the shape's weights
  std::vector<int> prompts = {512};      // lengths of prompts; 0: no such test
  std::vector<int> generations = {128};  // tokens generated; 0: no such test
  std::vector<int> batches = {1};        // sequences side by side
  int depth = 0;                         // tokens in the context before generation begins
  bool operations = false;               // a table of where the time goes, per operation and shape
  int repetitions = 3;
  bool json = false;
};

// Returns the exit code: 0, or 130 after Ctrl-C. Throws Error.
int run_bench(const BenchOptions& options);

}  // namespace infer
