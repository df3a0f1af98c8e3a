// infer pull: downloads a model by name.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace infer {

std::function<int()> define_pull(CLI::App& app);

}  // namespace infer
