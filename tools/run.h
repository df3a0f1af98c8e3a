// infer run: answers a prompt as a chat if the model has a chat template, otherwise completes it; streams the text to
// standard output.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "src/engine/engine.h"

namespace infer {

// Defines the flags on `app`; returns the function that runs the command. Its exit code is 130 if Ctrl-C ended the
// answer.
std::function<int()> define_run(CLI::App& app);

// Prints tokens and speeds as one line on standard error. `bandwidth`: adds the rate at which weights were read and the
// machine's read bandwidth, which is measured now: that takes about a second and 256 MiB.
void print_timings(Engine& engine, bool bandwidth);

}  // namespace infer
