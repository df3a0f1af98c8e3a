// infer plan: the memory a model would need on this machine, calculated exactly as for a run, but without running
// it.
#pragma once

#include <string>

#include "tools/flags.h"
#include "tools/speculation_flags.h"

namespace infer {

struct PlanFlags {
  ModelFlags model;             // the file may be "" if there is a shape
  std::string shape;            // a well-known shape instead of a file
  std::string type = "Q4_K_M";  // of the shape's weights
  SpeculationFlags speculation;
  int parallel = 1;  // concurrent sequences, each with the whole context
  double requests_per_second = 0;
  int64_t output_tokens = 0;     // per answer
  double tokens_per_second = 0;  // of one replica; 0: measured
  bool json = false;
};

// Returns the exit code: 0, or 1 if it does not fit. Throws Error.
int run_plan(const PlanFlags& flags);

}  // namespace infer
