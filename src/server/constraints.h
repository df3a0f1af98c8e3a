// The request members that constrain answers, in the spellings of OpenAI, llama-server and vLLM. Pure functions; any
// thread. They throw ApiError (400) naming the member.
#pragma once

#include <optional>

#include "src/server/requests.h"
#include "src/text/answer_grammar.h"

namespace infer {

// response_format, grammar, json_schema, structured_outputs, guided_*; at most one of them may set a constraint.
ContentConstraint read_content_constraint(const JsonFields& fields, const RequestContext& context);

// The tools of a chat, and which calls are allowed.
struct ToolRequest {
  Json tools;            // offered to the model: an array, or null
  CallConstraint calls;  // kFree if no calls are offered
};
// tools, tool_choice, parallel_tool_calls.
ToolRequest read_tools(const JsonFields& fields, const RequestContext& context);

}  // namespace infer
