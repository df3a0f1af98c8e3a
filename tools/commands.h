// All subcommands, in one list.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string_view>
#include <vector>

namespace infer {

struct Command {
  std::string_view name;
  std::string_view summary;
  // Defines the flags on `app` and returns what runs the command afterwards: its exit code, or an Error thrown.
  std::function<std::function<int()>(CLI::App& app)> define;
};

const std::vector<Command>& commands();

}  // namespace infer
