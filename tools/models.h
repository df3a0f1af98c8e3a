// infer models, infer rm: the downloaded models.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace infer {

std::function<int()> define_models(CLI::App& app);
std::function<int()> define_rm(CLI::App& app);

}  // namespace infer
