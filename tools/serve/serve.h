// infer serve: an OpenAI-compatible server for one model.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <string>

#include "src/server/api_service.h"
#include "src/server/http_server.h"
#include "tools/flags.h"
#include "tools/model_by_name.h"
#include "tools/speculation_flags.h"

namespace infer {

// A flag is parsed directly into the options of the part that acts on it: the engine, the HTTP server or the API.
struct ServeOptions {
  ModelFlags model;
  NamedModelFlags named_model;
  SpeculationFlags speculation;
  std::string alias, chat_template;
  bool special_in_content = false;
  HttpServerOptions http;
  ApiOptions api;
  ReasoningFlags reasoning;
  std::string api_key_file;
  std::vector<std::string> api_keys;  // of --api-key
  bool no_auth = false;
  std::chrono::seconds drain_timeout{60};
  std::string log_format = "text", log_level = "info";

  ServeOptions() {
    model.engine.max_sequences = 8;
    model.engine.max_itl_ms = 250;
  }
};

// Serves until SIGTERM or SIGINT, then finishes the accepted requests. Returns the exit code: 0, or 1 if the engine
// failed. Throws Error if it cannot start.
int run_serve(ServeOptions options);

// Defines the flags on `app`; returns the function that runs the server.
std::function<int()> define_serve(CLI::App& app);

}  // namespace infer
