// Checks output files before long work begins, so that anything that would prevent writing them is reported early.
#pragma once

#include <string>

namespace infer {

// Throws Error(kIo) if `path` cannot be created as a file (written under a temporary name in the same folder and
// renamed): its folder is missing or not writable, or it is itself a folder. Creates nothing. `how`: how the user names
// it, "with -o" or "as OUT".
void check_output_file(const std::string& path, const std::string& how);

}  // namespace infer
