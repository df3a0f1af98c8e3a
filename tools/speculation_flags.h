// The flags of speculative decoding, of the commands that generate text.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "src/engine/draft/speculation_options.h"
#include "src/engine/engine.h"

namespace infer {

struct SpeculationFlags {
  std::string draft_model;           // --draft-model: a file; "": none
  std::string gpu_layers;            // --n-gpu-layers-draft; "": auto
  std::string key_type, value_type;  // -ctkd, -ctvd; "": the device's default
  std::string source = "off";        // --spec: off, lookup
  int most = 8, least = 0;           // --draft-max, --draft-min
  double least_probability = 0;      // --draft-p-min

  SpeculationOptions options() const;  // loads the draft; throws Error
};
void add_speculation_flags(CLI::App& app, SpeculationFlags& flags);

// "drafted 120 tokens, 4.0 at a time, 80 % accepted, 3.10 tokens per step"; "" where nothing was drafted.
std::string speculation_summary(const Engine& engine);

}  // namespace infer
