// infer bench: speed of prompt processing and generation at several batch sizes, as a fraction of this machine's
// limits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/flags.h"
#include "tools/speculation_flags.h"

namespace infer {

struct BenchOptions {
  ModelFlags model;                      // the file is "" if there is a shape
  SpeculationFlags speculation;          // if any, generation is measured with and without
  std::string text_file;                 // with the beginning of the texts to continue; "": random tokens
  std::string shape;                     // a well-known shape with random weights, instead of a file
  std::string type = "Q4_K_M";           // of the shape's weights
  std::vector<int> prompts = {512};      // prompt lengths; 0: no such test
  std::vector<int> generations = {128};  // tokens generated; 0: no such test
  std::vector<int> batches = {1};        // concurrent sequences
  int depth = 0;                         // tokens already in the context when generation begins
  bool operations = false;               // print where the time goes, per operation and shape
  int repetitions = 3;
  bool json = false;
};

// Returns the exit code: 0, or 130 after Ctrl-C. Throws Error.
int run_bench(const BenchOptions& options);

}  // namespace infer
