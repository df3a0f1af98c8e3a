// An error response to a client: a status, and a body in the form of OpenAI's errors. Thrown by the code that parses,
// checks or admits requests; ends that request, never the process.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "src/text/ordered_json.h"

namespace infer {

class ApiError : public std::runtime_error {
 public:
  // `type` and `code` are the API's own words ("invalid_request_error", "context_length_exceeded"); `param` names the
  // member of the request that is wrong. Empty `code` and `param` become null.
  ApiError(int status, std::string type, const std::string& message, std::string code = "", std::string param = "");

  int status() const { return status_; }
  const std::string& code() const { return code_; }
  const std::string& param() const { return param_; }
  int retry_after = 0;  // seconds; 0: no Retry-After header
  // Additional numeric members of the error, for clients that act on them.
  std::vector<std::pair<std::string, int64_t>> details;

  // {"error": {"message", "type", "param", "code", ...}}
  nlohmann::ordered_json to_json() const;

 private:
  int status_;
  std::string type_, code_, param_;
};

// 400. The message is `PARAM: WHAT`.
ApiError invalid_parameter(const std::string& param, const std::string& what, const std::string& code = "");
// 400. The message is `PARAM: expected X, found Y`.
ApiError unexpected_value(const std::string& param, const std::string& expected, const std::string& found);

}  // namespace infer
