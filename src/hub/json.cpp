#include "src/hub/json.h"

#include "ggml-like/message.h"

namespace infer {
namespace {

constexpr int kMaxDepth = 32;
constexpr uint64_t kMaxSize = uint64_t{1} << 53;  // beyond, JSON's numbers are not exact

}  // namespace

nlohmann::json parse_hub_json(std::string_view text, const std::string& where) {
  bool deep = false;
  const auto watch = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    deep = deep || depth > kMaxDepth;
    return !deep;
  };
  const nlohmann::json parsed = nlohmann::json::parse(text, watch, false);
  if (deep) throw Error(ErrorCode::kInvalidFile, expected_found(where, "JSON of at most 32 levels", "more"));
  if (!parsed.is_object() && !parsed.is_array()) {
    throw Error(ErrorCode::kInvalidFile, expected_found(where, "a JSON object or array", "something else"));
  }
  return parsed;
}

const nlohmann::json& json_member(const nlohmann::json& object, const char* name, const std::string& where) {
  if (!object.is_object() || !object.contains(name)) {
    throw Error(ErrorCode::kInvalidFile, expected_found(where, concat("a member \"", name, "\""), "none"));
  }
  return object.at(name);
}

std::string json_string(const nlohmann::json& object, const char* name, const std::string& where) {
  const nlohmann::json& value = json_member(object, name, where);
  if (!value.is_string()) {
    throw Error(ErrorCode::kInvalidFile, expected_found(where, name, "a string", value.type_name()));
  }
  return value.get<std::string>();
}

std::string json_optional_string(const nlohmann::json& object, const char* name) {
  return object.is_object() && object.contains(name) && object.at(name).is_string() ? object.at(name).get<std::string>()
                                                                                    : "";
}

uint64_t json_size(const nlohmann::json& object, const char* name, const std::string& where) {
  const nlohmann::json& value = json_member(object, name, where);
  if (!value.is_number_unsigned() || value.get<uint64_t>() > kMaxSize) {
    throw Error(ErrorCode::kInvalidFile, expected_found(where, name, "a number of bytes", value.type_name()));
  }
  return value.get<uint64_t>();
}

}  // namespace infer
