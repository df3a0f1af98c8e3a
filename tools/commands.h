// The list of all subcommands.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace infer {

struct Command {
  std::string_view name;
  std::string_view summary;
  // Defines the flags on `app` and returns the function that runs the command: it returns the exit code or throws
  // Error.
  std::function<std::function<int()>(CLI::App& app)> define;
  std::vector<std::string> examples;           // command lines, for --help
  std::string_view guide = {};                 // its page in docs/, without the suffix; "" if it has none
  std::vector<std::string_view> aliases = {};  // names that other programs have for it
};

const std::vector<Command>& commands();
const Command* find_command(std::string_view name);  // by its name or an alias; null if there is none
// What to do instead of a command of ollama's that has no counterpart; "" for any other name.
std::string_view instead_of_command(std::string_view name);

// Sets up `app` for the command, with --help and --version; returns the function that runs it, as `define` does.
std::function<int()> define_command(const Command& command, CLI::App& app);

}  // namespace infer
