// Flags of llama.cpp's llama-cli and llama-server that have no counterpart here: those that ask for what happens anyway
// are accepted, the others are refused by name with the reason or the alternative. One table of all of them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace infer {

enum class FlagValue : uint8_t {
  kNone,    // stands alone
  kSwitch,  // on, off or auto may follow
  kOne,
};

struct LlamaCppFlag {
  const char* names;  // as typed, with commas
  FlagValue value;
  // Values that ask for what happens anyway, with blanks around each; "*": all; "": none, the flag is refused.
  const char* accepted;
  const char* why;      // why there is nothing to do; "" if none is accepted
  const char* instead;  // for a refused value: the reason, or what to use; "" if all are accepted
};
std::span<const LlamaCppFlag> llama_cpp_flags();

// Adds those flags that `app` does not define itself, hidden from --help. Parsing adds a line to `ignored` for each one
// that was accepted, and throws Error(kInvalidArgument) at one that is refused.
void add_llama_cpp_flags(CLI::App& app, std::vector<std::string>& ignored);

}  // namespace infer
