// The program: finds the subcommand, parses its flags, runs it, and turns errors into one line and an exit code
// (0 done, 1 failed, 2 wrong usage).
#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "tools/commands.h"
#include "tools/flags.h"

namespace {

constexpr const char* kVersion = INFER_VERSION;

int print_help() {
  std::printf("infer %s: runs GGUF language models on the machine you have\n\n", kVersion);
  std::printf("  infer -m model.gguf -p \"Once upon a time\"\n\n");
  for (const infer::Command& command : infer::commands()) {
    std::printf("  infer %-10s %s\n", std::string(command.name).c_str(), std::string(command.summary).c_str());
  }
  std::printf("\ninfer COMMAND --help shows the flags of a command.\n");
  return 0;
}

int fail(const std::string& who, const std::string& message, int code) {
  std::fprintf(stderr, "%s: %s\n", who.c_str(), message.c_str());
  return code;
}

// First line of a message, safe for a terminal.
std::string one_line(const std::string& text) { return infer::printable(text.substr(0, text.find('\n')), 2000); }

int run_command(const infer::Command& command, const std::vector<std::string>& arguments) {
  const std::string who = "infer " + std::string(command.name);
  CLI::App app{std::string(command.summary), who};
  app.allow_windows_style_options(false);
  std::function<int()> body;
  try {
    body = command.define(app);
    std::vector<std::string> reversed = infer::expand_short_flags(arguments);
    std::reverse(reversed.begin(), reversed.end());
    app.parse(reversed);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return fail(who, one_line(error.what()) + " (" + who + " --help shows the flags)", 2);
  }
  try {
    return body();
  } catch (const infer::Error& error) {
    return fail(who, one_line(error.what()), error.code() == infer::ErrorCode::kInvalidArgument ? 2 : 1);
  } catch (const std::bad_alloc&) {
    return fail(who, "[memory] not enough memory", 1);
  } catch (const std::exception& error) {
    return fail(who, one_line(error.what()), 1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) {
    print_help();
    return 2;
  }
  if (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") return print_help();
  if (arguments[0] == "--version") {
    std::printf("infer %s\n", kVersion);
    return 0;
  }
  std::string name = "run";
  if (!arguments[0].starts_with("-")) {
    name = arguments[0];
    arguments.erase(arguments.begin());
  }
  for (const infer::Command& command : infer::commands()) {
    if (command.name == name) return run_command(command, arguments);
  }
  return fail("infer", "unknown command " + infer::printable(name, 100) + " (infer --help lists them)", 2);
}
