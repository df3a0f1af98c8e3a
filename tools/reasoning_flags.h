// Flags about a model's reasoning, shared by run and serve.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "src/text/ordered_json.h"

namespace infer {

struct ReasoningFlags {
  std::string wanted = "auto";  // on, off, auto: as the chat template decides
  int budget = -1;              // tokens; -1: no limit

  int limit() const { return wanted == "off" ? 0 : budget; }  // as `budget`
  // The chat template's variables: those given (an object or null), and enable_thinking if it is wanted or not.
  nlohmann::ordered_json variables(nlohmann::ordered_json given) const;
};
void add_reasoning_flags(CLI::App& app, ReasoningFlags& flags);

}  // namespace infer
