// infer imatrix: measures which columns of the weights matter while a model reads a text, and adds the results of
// earlier runs. For infer quantize --imatrix.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace infer {

// Defines the flags on `app`; returns the function that runs the command. Its exit code is 130 after Ctrl-C, and
// nothing is written then.
std::function<int()> define_imatrix(CLI::App& app);

}  // namespace infer
