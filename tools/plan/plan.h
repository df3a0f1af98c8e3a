// infer plan: what a model would take of this machine's memory, computed by the sums that a run makes, without running
// it.
#pragma once

#include <string>

#include "tools/flags.h"

namespace infer {

struct PlanFlags {
  ModelFlags model;             // the file may be "" when there is a shape
  std::string shape;            // a well-known shape instead of a file
  std::string type = "Q4_K_M";  // of the shape's weights
  std::string draft_model;      // file of a draft; "": none
  int parallel = 1;             // sequences side by side, each with the whole context
  double requests_per_second = 0;
  int64_t output_tokens = 0;     // of an answer
  double tokens_per_second = 0;  // of one replica; 0: measured
  bool json = false;
};

// Returns the exit code: 0, or 1 when it does not fit. Throws Error.
int run_plan(const PlanFlags& flags);

}  // namespace infer
