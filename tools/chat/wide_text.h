// Converts between UTF-8 and the wide characters that libedit and the C library's width tables use. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace infer {

std::wstring to_wide(std::string_view text);  // invalid UTF-8 becomes U+FFFD
std::string to_utf8(std::wstring_view wide);

}  // namespace infer
