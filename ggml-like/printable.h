// Makes untrusted text (names and strings from files, request fields) safe for a terminal, a log or an error message.
// Pure functions; any thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace infer {

// Keeps valid UTF-8. Control characters (C0, DEL, C1, line separators, text direction marks) and invalid UTF-8 become
//  \t \r \xNN or \u{NNNN}; a backslash is doubled. Input longer than `max_bytes` is cut at a character boundary and
//  "..." appended.
std::string printable(std::string_view text, size_t max_bytes = 256);
// The same for a path of up to 4,096 bytes.
std::string printable_path(const std::filesystem::path& path);
// The same for a whole message whose untrusted parts are already printable: backslashes are kept.
std::string printable_message(std::string_view text, size_t max_bytes);

// Length of the UTF-8 character at the start of `text`, 0 if invalid (such as overlong forms, surrogates and code
// points above U+10FFFF). Stores the code point in `code_point`.
size_t utf8_character(std::string_view text, char32_t& code_point);

}  // namespace infer
