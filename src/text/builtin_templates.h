// The built-in chat templates, written in the template language from the formats that the models' vendors
// published.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace infer {

struct BuiltinTemplate {
  std::string_view name;  // as in llama.cpp's --chat-template
  std::string_view body;
};

std::span<const BuiltinTemplate> builtin_templates();

// A prefix for every body: the macro text(content), for content that is a string or a list of parts.
std::string_view builtin_template_head();

}  // namespace infer
