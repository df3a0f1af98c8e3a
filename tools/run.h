// infer run: completes a prompt, streaming the text to standard output.
#pragma once

#include <string>

#include "src/text/sampler_params.h"
#include "tools/flags.h"

namespace infer {

struct RunOptions {
  ModelFlags model;
  SamplingParams sampling;
  std::string prompt;  // -p
  bool has_prompt = false;
  std::string prompt_file;  // -f
  int n_predict = -1;       // -n; -1: until the end of generation or of the context
  bool ignore_eog = false;
  bool quiet = false;
};

// Returns the exit code: 0, or 130 when Ctrl-C ended the answer. Throws Error.
int run_completion(const RunOptions& options);

}  // namespace infer
