// infer serve: an OpenAI-compatible server for one model.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "src/server/api_service.h"
#include "src/server/http_server.h"
#include "tools/flags.h"
#include "tools/speculation_flags.h"

namespace infer {

struct ServeOptions {
  ModelFlags model;
  SpeculationFlags speculation;
  std::string alias, chat_template;
  bool special_in_content = false;
  int parallel = 8;
  int64_t kv_tokens = 0;
  int step_tokens = 512;
  double max_itl_ms = 250;
  HttpServerOptions http;
  ApiOptions api;
  std::string api_key_file;
  bool no_auth = false;
  int idle_timeout = 60, read_timeout = 30, write_timeout = 30, request_timeout = 600, drain_timeout = 60;  // seconds
  std::string log_format = "text", log_level = "info";
  bool no_metrics = false;
  std::string pooling = "last";
};

// Serves until SIGTERM or SIGINT, then finishes the accepted requests. Returns the exit code: 0, or 1 if the engine
// failed. Throws Error if it cannot start.
int run_serve(ServeOptions options);

// Defines the flags on `app`; returns the function that runs the server.
std::function<int()> define_serve(CLI::App& app);

}  // namespace infer
