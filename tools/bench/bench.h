// infer bench: speed of prompt processing and generation at several batch sizes, as a fraction of this machine's
// limits.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <vector>

#include "tools/flags.h"
#include "tools/plan/shape_file.h"
#include "tools/speculation_flags.h"

namespace infer {

struct BenchOptions {
  ModelFlags model;  // the file is "" if there is a shape
  ShapeFlags shape;
  SpeculationFlags speculation;          // if enabled, generation is measured with and without it
  std::string text_file;                 // prompts are cut from the start of this text; "": random tokens
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

// Defines the flags on `app`; returns the function that runs the command.
std::function<int()> define_bench(CLI::App& app);

}  // namespace infer
