// infer logprobs: the most probable next tokens after every token of a text.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace infer {

// Defines the flags on `app`; returns the function that runs the command.
std::function<int()> define_logprobs(CLI::App& app);

}  // namespace infer
