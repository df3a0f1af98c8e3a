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

// In single quotes, as bash and zsh read it back.
inline std::string in_shell_quotes(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace infer
