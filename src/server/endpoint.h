// An endpoint of the API, as described by its file (api_<name>.cpp), and the list of all endpoints.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "src/server/api_options.h"

namespace infer {

class Api;
struct ApiCall;

struct Endpoint {
  const char* method;  // a GET endpoint also answers HEAD
  const char* path;    // a path that ends with a slash matches everything below it
  // Answers a call: fills in its response, or sets a stream that calls Api::finish() at its end. Throws ApiError, Error
  // or std::bad_alloc, each of which becomes an error response. Runs on many threads at once.
  void (*run)(Api& api, const std::shared_ptr<ApiCall>& call);
  bool needs_key = true;                                 // if the server has API keys
  bool needs_model = true;                               // responds 503 until the model is loaded and during shutdown
  bool quiet = false;                                    // logged at debug level, because programs poll it
  bool (*enabled)(const ApiOptions& options) = nullptr;  // null: always

  bool takes(std::string_view requested) const {
    const std::string_view own = path;
    return own == requested || (own.ends_with('/') && requested.starts_with(own));
  }
};

std::span<const Endpoint> endpoints();

}  // namespace infer
