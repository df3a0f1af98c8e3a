// The escapes of string literals.
#pragma once

#include <string>
#include <string_view>

namespace infer::jinja {

// The value of a string literal, as Python reads it, given the text between its quotes; unknown escapes are kept. For a
// truncated or unsupported escape, sets `problem` to the reason.
std::string unescape(std::string_view literal, std::string& problem);

}  // namespace infer::jinja
