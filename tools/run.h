// infer run: answers a prompt as a chat if the model has a chat template, otherwise completes it; streams the text to
// standard output.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace infer {

// Defines the flags on `app`; returns the function that runs the command. Its exit code is 130 if Ctrl-C ended the
// answer.
std::function<int()> define_run(CLI::App& app);

}  // namespace infer
