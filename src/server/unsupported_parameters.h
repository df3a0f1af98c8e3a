// Parameters that clients of OpenAI's API, llama-server or vLLM send and that this server does not implement. Each is
// refused by name unless its value asks for nothing, so that no known parameter is ignored in silence. Members that
// none of these APIs defines are ignored. The table is constant; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "src/server/json_fields.h"

namespace infer {

// The kinds of request, as bits of a set.
enum ApiRoute : uint8_t { kChatRoute = 1, kCompletionRoute = 2, kEmbeddingRoute = 4 };

struct UnsupportedParameter {
  const char* name;     // of the member; "stream_options.include_obfuscation" is a member of stream_options
  uint8_t routes;       // that define it: a set of ApiRoute
  const char* neutral;  // JSON array of the values that ask for nothing beside null; "*": every value
  const char* reason;   // a sentence for the client
};

// Sorted by topic. A name may come twice, for different routes.
std::span<const UnsupportedParameter> unsupported_parameters();

// Throws ApiError (400, code unsupported_parameter) for the first member of `object` that the table refuses. `path` is
// what stands before a member's name: "" for the body itself, "stream_options." for that member's own.
void refuse_unsupported(const Json& object, ApiRoute route, const std::string& path = "");

}  // namespace infer
