// JSON from servers and from the cache's own files, read within bounds: a member that is missing, of another type or
// out of range is an Error(kInvalidFile) that says where. Any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace infer {

// `where` names the source in messages. Throws for anything but an object or array of at most 32 levels.
nlohmann::json parse_hub_json(std::string_view text, const std::string& where);

const nlohmann::json& json_member(const nlohmann::json& object, const char* name, const std::string& where);
std::string json_string(const nlohmann::json& object, const char* name, const std::string& where);
// "" if it is missing or not a string.
std::string json_optional_string(const nlohmann::json& object, const char* name);
uint64_t json_size(const nlohmann::json& object, const char* name, const std::string& where);  // up to 2^53

}  // namespace infer
