// Untrusted text (names and strings of files, request fields) made safe for a terminal, a log or an error message.
// Pure functions; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace infer {

// Valid UTF-8 stays; control characters (C0, DEL, C1, line separators, text direction marks) and bytes that are not
// UTF-8 become \n \t \r \xNN or \u{NNNN}, and a backslash becomes two. Longer than `max_bytes` of input: cut at a
// character, "..." added.
std::string printable(std::string_view text, size_t max_bytes = 256);
// The same for a whole message, whose untrusted parts are printable already: backslashes stay as they are.
std::string printable_message(std::string_view text, size_t max_bytes);

// Length of the UTF-8 character at the start of `text`, 0 when the bytes there are none (overlong forms, surrogates
// and code points above U+10FFFF are none). The code point goes to `code_point`.
size_t utf8_character(std::string_view text, char32_t& code_point);

}  // namespace infer
