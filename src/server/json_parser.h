// Parses clients' JSON within bounds: time and memory are proportional to its size, for any input. Any thread.
#pragma once

#include <cstddef>
#include <string_view>

#include "src/text/ordered_json.h"

namespace infer {

using Json = nlohmann::ordered_json;

struct JsonLimits {
  int depth = 64;                    // nesting of arrays and objects
  size_t object_members = 4096;      // per object; looking up a member takes time proportional to this
  size_t members = size_t{1} << 18;  // of all objects together
  size_t values = size_t{1} << 20;   // numbers, strings, arrays, ...: each takes up to 64 bytes besides its text
};

// Parses a request's body, which must be an object. If a member name is repeated, the last value wins, at the place of
// the first. Throws ApiError (400, invalid_json) for anything else and beyond the limits.
Json parse_json_object(std::string_view body, const JsonLimits& limits);

}  // namespace infer
