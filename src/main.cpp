// The program: finds the subcommand, parses its flags, runs it, and reports an error as one line with an exit code (0:
// done, 1: failed, 2: wrong usage).
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "tools/arguments.h"
#include "tools/commands.h"
#include "tools/option_names.h"

namespace {

constexpr const char* kVersion = INFER_VERSION;

int fail(const std::string& who, const std::string& message, int code) {
  std::fprintf(stderr, "%s: %s\n", who.c_str(), message.c_str());
  return code;
}

// Flushes standard output. Lost output, for example on a full disk, is a failure.
int finish(const std::string& who, int code) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && !std::ferror(stdout) && std::cout) return code;
  return fail(who, "standard output cannot be written", 1);
}

void print_help(std::FILE* out) {
  std::fprintf(out, "infer %s: runs GGUF language models on the machine you have\n\n", kVersion);
  std::fprintf(out, "  infer model.gguf                             chats with a model\n");
  std::fprintf(out, "  infer model.gguf -p \"Once upon a time\"       continues a text, or answers once in a pipe\n");
  std::fprintf(out, "  infer serve model.gguf                       serves it to programs\n\n");
  for (const infer::Command& command : infer::commands()) {
    std::fprintf(out, "  infer %-11s %s\n", std::string(command.name).c_str(), std::string(command.summary).c_str());
  }
  std::fprintf(out, "\ninfer help COMMAND shows the flags of a command, infer version the version.\n");
}

// The first line of a message, safe for a terminal.
std::string one_line(const std::string& text) {
  return infer::printable_message(text.substr(0, text.find('\n')), 2000);
}

// A file to run, as in `infer model.gguf`.
bool looks_like_model(const std::string& name) {
  std::error_code ignored;
  return !infer::find_command(name) && (name.ends_with(".gguf") || std::filesystem::is_regular_file(name, ignored));
}

std::string unknown_command(const std::string& name) {
  if (const std::string_view instead = infer::instead_of_command(name); !instead.empty()) {
    return infer::concat("There is no command ", name, ". ", instead);
  }
  std::vector<std::string> known;
  for (const infer::Command& command : infer::commands()) known.emplace_back(command.name);
  const std::string nearest = infer::nearest_name(name, known);
  const std::string advice = nearest.empty() ? "" : "Did you mean " + nearest + "? ";
  return "Unknown command " + infer::printable(name, 100) + ". " + advice + "infer --help lists the commands.";
}

int exit_code(infer::ErrorCode code) {
  if (code == infer::ErrorCode::kCancelled) return 130;
  return code == infer::ErrorCode::kInvalidArgument ? 2 : 1;
}

int run_command(const infer::Command& command, const std::vector<std::string>& arguments) {
  const std::string who = "infer " + std::string(command.name);
  CLI::App app;
  std::function<int()> body;
  try {
    body = infer::define_command(command, app);
    infer::parse_arguments(app, arguments);
  } catch (const CLI::Success& done) {
    return finish(who, app.exit(done));
  } catch (const CLI::FileError& error) {
    const std::string text = one_line(error.what());
    return fail(who, "Cannot read the config file " + text.substr(0, text.find(" was not")) + ". Check --config.", 2);
  } catch (const CLI::ParseError& error) {
    return fail(who, one_line(error.what()) + " (" + who + " --help shows the flags)", 2);
  } catch (const infer::Error& error) {
    return fail(who, one_line(error.what()), 2);
  }
  try {
    return finish(who, body());
  } catch (const infer::Error& error) {
    return fail(who, one_line(error.what()), exit_code(error.code()));
  } catch (const std::bad_alloc&) {
    return fail(who, "[memory] Out of memory. Try a smaller context (-c) or model.", 1);
  } catch (const std::exception& error) {
    return fail(who, one_line(error.what()), 1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) {
    print_help(stderr);
    return 2;
  }
  std::string name = arguments[0];
  if (name == "--version" || name == "version") {
    std::printf("infer %s\n", kVersion);
    return finish("infer", 0);
  }
  const bool wants_help = name == "--help" || name == "-h" || name == "help";
  if (wants_help && arguments.size() == 1) {
    print_help(stdout);
    return finish("infer", 0);
  }
  if (wants_help) {
    name = arguments[1];
    arguments = {name, "--help"};
  } else if (name.starts_with("-") || looks_like_model(name)) {
    name = "run";
    arguments.insert(arguments.begin(), name);
  }
  arguments.erase(arguments.begin());
  if (const infer::Command* command = infer::find_command(name)) return run_command(*command, arguments);
  return fail("infer", unknown_command(name), 2);
}
