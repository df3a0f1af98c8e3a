// The names of widely used formats, for messages and documents only.
#pragma once

#include <string>
#include <string_view>

#include "src/text/tool_calls/tool_call_format.h"

namespace infer {

// "" if it is none of them. `call`: a call as the template writes it.
std::string call_family(ToolCallFormat::Kind kind, std::string_view call);

}  // namespace infer
