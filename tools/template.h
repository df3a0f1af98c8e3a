// infer template: renders a conversation with a chat template.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace infer {

// Defines the flags on `app`; returns the function that runs the command, which prints the prompt without adding a
// line break.
std::function<int()> define_template(CLI::App& app);

}  // namespace infer
