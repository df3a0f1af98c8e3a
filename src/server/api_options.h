// How the API is served: set by the flags of `infer serve`. Plain data.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "src/engine/request.h"
#include "src/server/admission.h"
#include "src/server/generation_params.h"

namespace infer {

struct ApiOptions {
  std::vector<std::string> keys;  // API keys; empty: anyone who reaches the server may use it
  std::string bound_host = "127.0.0.1";
  std::vector<std::string> allowed_hosts, cors_origins;
  AdmissionLimits admission;
  bool schema_lenient = false;  // keywords of JSON schemas that cannot be enforced are ignored
  bool share_prefixes = false;  // requests with different keys share cached prefixes
  RequestLimits limits;
  SamplingParams sampling;    // the defaults for requests
  Json template_variables;    // of the chat template, for all requests: object or null
  int reasoning_budget = -1;  // tokens of reasoning in an answer; -1: no limit
  std::chrono::seconds request_timeout{600};
  bool serve_metrics = true;
  std::optional<Pooling> pooling;  // of embeddings; unset: the model's own
  Json settings;                   // the flags that were given, for /version
  std::string version;             // of the program
};

}  // namespace infer
