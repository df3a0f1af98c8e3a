// Files that a command writes after long work: anything that prevents writing them is reported before the work begins.
#pragma once

#include <string>

namespace infer {

// Throws Error(kIo) with a sentence when `path` cannot become a file, written beside its name and renamed: its folder
// is missing or takes no files, or it is a folder itself. Creates nothing. `how`: how the user names it, "with -o" or
// "as OUT".
void check_output_file(const std::string& path, const std::string& how);

}  // namespace infer
