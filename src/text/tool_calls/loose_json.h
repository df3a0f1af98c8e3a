// Values that a model wrote in another language than JSON: Python's literals, and plain text.
#pragma once

#include <string>
#include <string_view>

#include "src/text/tool_calls/tool_set.h"

namespace infer {

// The text as part of a JSON string, without quotes. REQUIRES: whole characters of UTF-8.
std::string json_escaped(std::string_view text);
std::string json_string(std::string_view text);  // with quotes

// The JSON value of untyped text that need not be a string. Python's literals (True, None, 'text') become JSON; what is
// neither is a string.
std::string json_of_text(std::string_view text, ParameterKind kind);

// The JSON value of an expression in Python. A string may have its own quotes inside, unescaped.
std::string json_of_python(std::string_view text);

}  // namespace infer
