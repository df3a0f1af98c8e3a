// nlohmann::ordered_json with a destructor that does not allocate. The library's own first collects nested values in a
// vector; if that allocation fails, an exception leaves the destructor and terminates the process. Code that handles
// JSON from clients must include this header instead of <nlohmann/json.hpp>.
#pragma once

#include <nlohmann/json.hpp>

// Specializes it for the whole program: every translation unit that uses ordered_json must see this declaration.
template <>
void nlohmann::ordered_json::json_value::destroy(value_t t);
