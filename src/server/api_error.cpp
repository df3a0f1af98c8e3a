#include "src/server/api_error.h"

#include <utility>

#include "src/server/json_object.h"

namespace infer {

ApiError::ApiError(int status, std::string type, const std::string& message, std::string code, std::string param)
    : std::runtime_error(message),
      status_(status),
      type_(std::move(type)),
      code_(std::move(code)),
      param_(std::move(param)) {}

nlohmann::ordered_json ApiError::to_json() const {
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  nlohmann::ordered_json error =
      json_object("message", what(), "type", type_, "param", text_or_null(param_), "code", text_or_null(code_));
  for (const auto& [name, number] : details) error[name] = number;
  return json_object("error", std::move(error));
}

ApiError invalid_parameter(const std::string& param, const std::string& what, const std::string& code) {
  return ApiError(400, "invalid_request_error", param + ": " + what, code, param);
}

ApiError unexpected_value(const std::string& param, const std::string& expected, const std::string& found) {
  return invalid_parameter(param, "expected " + expected + ", found " + found);
}

}  // namespace infer
