// One connection to an OpenAI endpoint, over which requests go one after another. One thread each.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace infer {

struct Endpoint {
  std::string origin;         // "http://127.0.0.1:8080"
  std::string base = "/v1";   // path before /chat/completions
  std::string api_key;        // "": none
  int timeout_seconds = 300;  // without a byte from the server

  std::string url() const { return origin + base; }
};

// http[s]://HOST[:PORT][/PATH], where a PATH without /v1 at its end is given one. Throws Error(kInvalidArgument).
Endpoint parse_endpoint(const std::string& url);

// What became of a request. Times in seconds.
struct Outcome {
  std::string error;            // kind: "connection", "timeout", "status 429", "stream"; "": answered in full
  std::string message;          // of the error
  double first_token = 0;       // from sending to the first text
  double total = 0;             // to the end of the answer
  std::vector<double> gaps;     // between pieces of text
  double per_output_token = 0;  // mean after the first; 0 for an answer of one token
  long long prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
};

class LoadClient {
 public:
  explicit LoadClient(const Endpoint& endpoint);
  ~LoadClient();

  // Sends a request with "stream": true and reads the answer to its end, or until `stop` says so.
  Outcome run(const std::string& path, const nlohmann::json& body, const std::function<bool()>& stop);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace infer
