// Flags that replace metadata of the model file: --override-kv, and those that scale positions.
#pragma once

#include <CLI/CLI.hpp>

#include "ggml-like/gguf.h"

namespace infer {

void add_metadata_flags(CLI::App& app, GgufOpenOptions& options);

}  // namespace infer
