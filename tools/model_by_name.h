// Models by name for the commands that run them: finds the file in the cache, or downloads it.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "ggml-like/gguf.h"
#include "src/engine/engine_options.h"
#include "tools/hub_flags.h"

namespace infer {

// Downloads the model that the name means, unless the cache has what the server has. Says on standard error which
// quantization it chose, if the name does not.
CachedModel pull_model(Hub& hub, const ModelName& name, const EngineOptions& engine);

struct NamedModelFlags {
  HubFlags hub;
  std::string repo, file;  // -hf, -hff
};
// -hf, -hff, -hft, --offline; with them, --model is not required.
void add_named_model_flags(CLI::App& app, NamedModelFlags& flags);

// The path of the model file. `model` (-m) is a path, or a name if there is no such file. What -hf names is downloaded;
// for a name with -m, a person at a terminal is asked first, and otherwise the error says which command downloads it.
// Throws Error(kInvalidArgument) without a model; Error(kCancelled) after Ctrl-C.
std::string find_model_file(const std::string& model, const NamedModelFlags& flags, const EngineOptions& engine);

// Opens the file that find_model_file() finds for a path or a name.
std::shared_ptr<const GgufFile> open_model(const std::string& model, const GgufOpenOptions& options = {});

}  // namespace infer
