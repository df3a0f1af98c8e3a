// Flags of the commands that find or download models by name, and what they share: signals, reports, exit codes.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "src/hub/hub.h"

namespace infer {

struct HubFlags {
  std::string token;  // -hft; "": as the environment says
  bool offline = false;
  int connections = 4, retries = 5, timeout = 30;
};

void add_token_flags(CLI::App& app, HubFlags& flags);     // -hft, --offline
void add_download_flags(CLI::App& app, HubFlags& flags);  // --connections, --retries, --timeout

// The environment's options with the flags' changes.
HubOptions hub_options_of(const HubFlags& flags);

// A name of a model as the user wrote it. Throws Error(kInvalidArgument) with the forms that names have.
ModelName require_model_name(const std::string& text);

// Runs `work` with a hub whose downloads are shown on standard error and end at Ctrl-C; a broken connection or a file
// that grows too large is an error instead of the end of the process. Throws Error(kCancelled) after Ctrl-C.
void with_hub(const HubFlags& flags, const std::function<void(Hub& hub)>& work);

}  // namespace infer
