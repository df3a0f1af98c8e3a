// UTF-8 and the wide characters that libedit and the C library's tables of widths work on. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace infer {

std::wstring to_wide(std::string_view text);  // bytes that are no UTF-8 become U+FFFD
std::string to_utf8(std::wstring_view wide);

}  // namespace infer
