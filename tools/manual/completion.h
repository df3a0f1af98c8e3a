// Scripts that complete infer's command lines in a shell: commands, options, the words an option accepts, and file
// names.
#pragma once

#include <string>
#include <vector>

#include "tools/manual/command_reference.h"

namespace infer {

std::string bash_completion(const std::vector<CommandReference>& commands);
std::string zsh_completion(const std::vector<CommandReference>& commands);
std::string fish_completion(const std::vector<CommandReference>& commands);

}  // namespace infer
