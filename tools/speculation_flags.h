// The speculative decoding flags of the commands that generate text.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "src/engine/draft/speculation_options.h"
#include "src/engine/engine.h"

namespace infer {

struct SpeculationFlags {
  std::string draft_model;    // --draft-model: a file; "": none
  SpeculationOptions parsed;  // all others, without the draft

  // `parsed`, checked and with the draft loaded. Throws Error.
  SpeculationOptions options() const;
};
void add_speculation_flags(CLI::App& app, SpeculationFlags& flags);

// "drafted 120 tokens, 4.0 at a time, 80 % accepted, 3.10 tokens per step"; "" if nothing was drafted.
std::string speculation_summary(const Engine& engine);

}  // namespace infer
