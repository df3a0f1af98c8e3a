// Manual pages in the man(7) macros, made from what --help says.
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "tools/manual/command_reference.h"

namespace infer {

// infer-run(1) and so on. `date` is shown at the foot of the page.
std::string command_page(const CommandReference& command, std::time_t date);

// infer(1): what the program is, and the list of its commands.
std::string program_page(const std::vector<CommandReference>& commands, std::time_t date);

}  // namespace infer
