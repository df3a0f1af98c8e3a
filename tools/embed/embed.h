// infer embed: turns texts into vectors, or scores them against a query.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace infer {

// Defines the flags on `app`; returns the function that runs the command.
std::function<int()> define_embed(CLI::App& app);

}  // namespace infer
