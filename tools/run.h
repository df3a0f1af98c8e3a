// infer run: answers a prompt as a chat if the model has a chat template, otherwise completes it; streams the text to
// standard output.
#pragma once

#include <string>

#include "src/engine/engine.h"
#include "src/text/sampler_params.h"
#include "tools/flags.h"
#include "tools/speculation_flags.h"

namespace infer {

struct RunOptions {
  ModelFlags model;
  SamplingParams sampling;
  AnswerFlags answer;
  SpeculationFlags speculation;
  std::string prompt;               // -p
  std::string prompt_file;          // -f
  std::string system;               // --system-prompt
  std::string system_file;          // --system-prompt-file
  std::string chat_template;        // --chat-template: a name or a file; "": the model's own
  std::string template_variables;   // --jinja-vars: a JSON object
  bool special_in_content = false;  // control tokens written in messages are tokens, not text
  bool raw = false;                 // plain completion, even if the model has a chat template
  bool single_turn = false;         // one answer, even on a terminal
  bool quiet = false;
};

// Returns the exit code: 0, or 130 if Ctrl-C ended the answer. Throws Error.
int run(const RunOptions& options);

// Prints tokens and speeds as one line on standard error. `bandwidth`: also prints the rate at which weights were read
// next to the machine's read bandwidth, which is measured now: that takes about a second and 256 MiB.
void print_timings(Engine& engine, bool bandwidth);

}  // namespace infer
