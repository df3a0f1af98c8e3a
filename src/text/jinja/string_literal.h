// The escapes of string literals.
#pragma once

#include <string>
#include <string_view>

namespace infer::jinja {

// The value of a string literal, given the text between its quotes, as Python reads it; unknown escapes are kept. For a
// truncated or unsupported escape, `problem` is set to the reason.
std::string unescape(std::string_view literal, std::string& problem);

}  // namespace infer::jinja
