// infer perplexity: how well a model predicts a text, and how far its distributions are from another model's.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace infer {

// Defines the flags on `app`; returns the function that runs the command. Its exit code is 130 after Ctrl-C.
std::function<int()> define_perplexity(CLI::App& app);

}  // namespace infer
