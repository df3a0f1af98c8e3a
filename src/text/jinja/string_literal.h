// The escapes of string literals.
#pragma once

#include <string>
#include <string_view>

namespace infer::jinja {

// What a literal between its quotes stands for, as Python reads it; unknown escapes stay as they are. On an escape
// that is cut off or not available `problem` says why.
std::string unescape(std::string_view literal, std::string& problem);

}  // namespace infer::jinja
