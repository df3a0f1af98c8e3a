#include "tools/manual/manual.h"

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "tools/arguments.h"
#include "tools/manual/completion.h"
#include "tools/manual/manual_page.h"

namespace infer {
namespace {

struct ManualOptions {
  std::string command, folder;
};

// The date on the pages: today's, or that of SOURCE_DATE_EPOCH, so that a package can be built twice with the same
// bytes.
std::time_t page_date() {
  if (const char* seconds = std::getenv("SOURCE_DATE_EPOCH")) return std::strtoll(seconds, nullptr, 10);
  return std::time(nullptr);
}

void write_page(const std::filesystem::path& path, const std::string& page) {
  std::ofstream file(path, std::ios::binary);
  file << page;
  file.close();
  if (!file) throw Error(ErrorCode::kIo, concat("Cannot write ", printable(path.string(), 200), "."));
}

int run_manual(const ManualOptions& options) {
  const std::time_t date = page_date();
  const std::vector<CommandReference> all = describe_commands();
  if (!options.folder.empty()) {
    const std::filesystem::path folder = options.folder;
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    write_page(folder / "infer.1", program_page(all, date));
    for (const CommandReference& command : all) {
      write_page(folder / concat("infer-", command.name, ".1"), command_page(command, date));
    }
    return 0;
  }
  if (options.command.empty()) {
    std::cout << program_page(all, date);
    return 0;
  }
  for (const CommandReference& command : all) {
    if (command.name != options.command) continue;
    std::cout << command_page(command, date);
    return 0;
  }
  throw Error(ErrorCode::kInvalidArgument,
              concat("Unknown command ", printable(options.command, 100), ". infer --help lists the commands."));
}

}  // namespace

std::function<int()> define_manual(CLI::App& app) {
  const auto o = std::make_shared<ManualOptions>();
  std::vector<std::string> names;
  for (const Command& command : commands()) names.emplace_back(command.name);
  auto* command = app.add_option("command", o->command, "Command to describe (default: infer itself)");
  command->check(suggests(names))->type_name("COMMAND");
  app.add_option("--folder", o->folder, "Write the pages of all commands into this folder")
      ->check(not_empty())
      ->excludes(command)
      ->type_name("FOLDER");
  return [o] { return run_manual(*o); };
}

std::function<int()> define_completion(CLI::App& app) {
  const auto shell = std::make_shared<std::string>();
  app.add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(one_of({"bash", "zsh", "fish"}))
      ->type_name("SHELL");
  return [shell] {
    const std::vector<CommandReference> all = describe_commands();
    std::cout << (*shell == "bash"  ? bash_completion(all)
                  : *shell == "zsh" ? zsh_completion(all)
                                    : fish_completion(all));
    return 0;
  };
}

}  // namespace infer
