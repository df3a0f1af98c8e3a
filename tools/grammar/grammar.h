// infer grammar: checks a grammar or a JSON schema, and texts against it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace infer {

// Defines the flags on `app`; returns the function that runs the command.
std::function<int()> define_grammar(CLI::App& app);

}  // namespace infer
