// Splits what a template writes into tags, such as <tool_call>, </function>, [TOOL_CALLS] or the open <parameter=, and
// single bytes. Texts are compared by these units, so that a tag is never split.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace infer {

std::vector<std::string_view> template_tokens(std::string_view text);

// The longest common beginning and end, in whole units, as bytes.
size_t common_start(std::string_view a, std::string_view b);
size_t common_end(std::string_view a, std::string_view b);

// Tags and the words between them, without white space: "</a></b> c" gives three.
std::vector<std::string> tags_and_words(std::string_view text);

bool contains_tag(std::string_view text);

}  // namespace infer
