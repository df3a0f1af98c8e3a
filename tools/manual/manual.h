// infer manual and infer completion: manual pages and shell completion, made from the flags of all commands.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace infer {

std::function<int()> define_manual(CLI::App& app);
std::function<int()> define_completion(CLI::App& app);

}  // namespace infer
