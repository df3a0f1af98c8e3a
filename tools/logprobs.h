// infer logprobs: the most probable next tokens after every token of a text.
#pragma once

#include <string>

#include "tools/flags.h"

namespace infer {

struct LogprobsOptions {
  ModelFlags model;
  std::string tokens;  // "1,2,3": exactly these are evaluated
  std::string prompt;
  bool has_prompt = false;
  int top = 20;
  int step_tokens = 128;  // --ubatch: tokens per step
  bool json = false;
};

// Returns the exit code; throws Error.
int run_logprobs(const LogprobsOptions& options);

}  // namespace infer
