// Parameters of OpenAI's API, llama-server and vLLM that this server does not implement. Each is refused by name unless
// its value has no effect, so that no known parameter is silently ignored. Members that none of these APIs define are
// ignored. The table is constant; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "src/server/json_fields.h"

namespace infer {

// Request kinds, as bits of a set.
enum ApiRoute : uint8_t { kChatRoute = 1, kCompletionRoute = 2, kEmbeddingRoute = 4 };

struct UnsupportedParameter {
  const char* name;     // "stream_options.include_obfuscation" is a member of stream_options
  uint8_t routes;       // routes that define it: a set of ApiRoute
  const char* neutral;  // JSON array of the values, besides null, that have no effect; "*": every value
  const char* reason;   // a sentence for the client
};

// Grouped by topic. A name may appear twice, for different routes.
std::span<const UnsupportedParameter> unsupported_parameters();

// Throws ApiError (400, code unsupported_parameter) for the first member of `object` that the table refuses. `path`
// precedes member names in errors: "" for the body itself, "stream_options." for that member's own.
void refuse_unsupported(const Json& object, ApiRoute route, const std::string& path = "");

}  // namespace infer
