// infer run: answers a prompt as a chat where the model has a chat template, else completes it; streams the text to
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
  bool raw = false;                 // plain completion, whatever the model has
  bool single_turn = false;         // one answer, also on a terminal
  bool quiet = false;
};

// Returns the exit code: 0, or 130 when Ctrl-C ended the answer. Throws Error.
int run(const RunOptions& options);

// Tokens and speeds as one line on standard error. `bandwidth`: also the rate at which weights were read beside what
// the machine can read, which is measured now: it takes a good part of a second and 256 MiB.
void print_timings(Engine& engine, bool bandwidth);

}  // namespace infer
