// One connection to an OpenAI endpoint, which carries requests one after another. One thread each.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace infer {

struct ServerAddress {
  std::string origin;         // "http://127.0.0.1:8080"
  std::string base = "/v1";   // path before /chat/completions
  std::string api_key;        // "": none
  int timeout_seconds = 300;  // without receiving a byte from the server

  std::string url() const { return origin + base; }
};

// Parses http[s]://HOST[:PORT][/PATH]; /v1 is appended if PATH does not end with it. Throws Error(kInvalidArgument).
ServerAddress parse_server_address(const std::string& url);

// The result of a request. Times are in seconds.
struct Outcome {
  std::string error;            // kind: "connection", "timeout", "status 429", "stream"; "": answered completely
  std::string message;          // of the error
  double first_token = 0;       // from sending the request to the first text
  double total = 0;             // to the end of the answer
  std::vector<double> gaps;     // between pieces of text
  double per_output_token = 0;  // mean after the first; 0 if there is only one token
  long long prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
  long long drafted_tokens = 0, accepted_tokens = 0;  // from the server's timings
};

class LoadClient {
 public:
  explicit LoadClient(const ServerAddress& server);
  ~LoadClient();

  // Sends a request with "stream": true and reads the answer to its end, or until `stop` returns true.
  Outcome run(const std::string& path, const nlohmann::json& body, const std::function<bool()>& stop);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace infer
