// Values that a model wrote in forms other than JSON: Python literals and plain text.
#pragma once

#include <string>
#include <string_view>

#include "src/text/tool_calls/tool_set.h"

namespace infer {

// The text as the contents of a JSON string. REQUIRES: whole UTF-8 characters.
std::string json_escaped(std::string_view text);
std::string json_string(std::string_view text);  // with quotes

// The JSON value of untyped text that need not be a string. Python literals (True, None, 'text') become JSON; text that
// is neither Python nor JSON becomes a string.
std::string json_of_text(std::string_view text, ParameterKind kind);

// The JSON value of a Python expression. A string may contain its own kind of quotes, unescaped.
std::string json_of_python(std::string_view text);

}  // namespace infer
