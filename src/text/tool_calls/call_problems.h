// Why the calls of an answer are not what the request offered, for a log. Free function; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/text/tool_calls/tool_call_format.h"
#include "src/text/tool_calls/tool_set.h"

namespace infer {

struct WrittenCall {
  std::string_view name, arguments;
};

// A sentence for each problem, at most a few: text in the content that begins like a call, unknown tools, and arguments
// that are not a JSON object. Empty if the request offered no tools.
std::vector<std::string> call_problems(const ToolCallFormat& format, const ToolSet& tools, std::string_view content,
                                       const std::vector<WrittenCall>& calls);

}  // namespace infer
