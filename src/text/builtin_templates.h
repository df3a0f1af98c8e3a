// The chat templates that come with the program, written in the template language from the formats that the makers of
// the models published.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace infer {

struct BuiltinTemplate {
  std::string_view name;  // as llama.cpp's --chat-template knows it
  std::string_view body;
};

std::span<const BuiltinTemplate> builtin_templates();

// What stands in front of every body: the macro text(content), for contents that are text or a list of parts.
std::string_view builtin_template_head();

}  // namespace infer
