// infer plan: the memory a model would need on this machine, calculated exactly as for a run, but without running
// it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace infer {

// Defines the flags on `app`; returns the function that runs the command. Its exit code is 1 if the model does not fit.
std::function<int()> define_plan(CLI::App& app);

}  // namespace infer
