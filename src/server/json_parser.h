// JSON of clients, parsed within bounds: time and memory are proportional to the bytes, whatever they are. Any thread.
#pragma once

#include <cstddef>
#include <string_view>

#include "src/text/ordered_json.h"

namespace infer {

using Json = nlohmann::ordered_json;

struct JsonLimits {
  int depth = 64;                    // how deep arrays and objects may be nested
  size_t object_members = 4096;      // of one object; looking a member up takes time in proportion
  size_t members = size_t{1} << 18;  // of all objects together
  size_t values = size_t{1} << 20;   // numbers, strings, arrays, ...: each takes up to 64 bytes beside its text
};

// The object of a request's body. Of members with the same name the last one counts, in the place of the first. Throws
// ApiError (400, invalid_json) for everything else and for what exceeds the limits.
Json parse_json_object(std::string_view body, const JsonLimits& limits);

}  // namespace infer
