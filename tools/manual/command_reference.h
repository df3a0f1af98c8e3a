// What --help says about a command, as data: the manual pages and the completion scripts are made from it.
#pragma once

#include <string>
#include <vector>

#include "tools/commands.h"

namespace infer {

struct OptionReference {
  std::vector<std::string> names;  // as typed, those with one dash first; the name alone of an argument
  std::string group;               // heading in --help; "" for arguments
  std::string value;               // name of the value: FILE, N; "" for a flag
  std::string text, default_value, environment;
  std::vector<std::string> words;  // values to choose from, if they are known
  bool optional_value = false;     // may also stand alone
  bool required = false, repeatable = false;

  bool takes_file() const;    // the value can be the path of a file
  bool takes_folder() const;  // the value is the path of a folder
  // The first clause of `text`: completion menus have one line for each option.
  std::string headline() const;
};

struct CommandReference {
  std::string name, summary, guide;
  std::vector<OptionReference> options, arguments;  // in the order of --help; without hidden ones
  bool takes_bare_model = false;                    // infer run model.gguf
  bool takes_bare_prompt = false;                   // infer run model.gguf "Why is the sky blue?"
  std::vector<std::string> examples;
};

CommandReference describe(const Command& command);

// All commands, in the order of infer --help.
std::vector<CommandReference> describe_commands();

}  // namespace infer
