// nlohmann::ordered_json, destroyed without allocating. The library's own destructor gathers nested values in a vector
// first; where that vector finds no memory, the exception leaves a destructor and ends the process. Whatever handles
// JSON of clients includes this header in place of <nlohmann/json.hpp>.
#pragma once

#include <nlohmann/json.hpp>

// One definition for the whole program: every translation unit that uses ordered_json has to see this declaration.
template <>
void nlohmann::ordered_json::json_value::destroy(value_t t);
