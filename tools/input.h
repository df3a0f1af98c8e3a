// User input besides flags: text files and piped standard input.
#pragma once

#include <string>

namespace infer {

// The whole file; throws Error(kIo) if it cannot be read, Error(kInvalidArgument) above 1 GiB.
std::string read_text_file(const std::string& path);
// Standard input if it is a pipe, a socket or a file; "" for a terminal or another device.
std::string read_piped_stdin();
// All of standard input.
std::string read_stdin();

}  // namespace infer
