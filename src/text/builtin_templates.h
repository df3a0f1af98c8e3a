// The chat templates that come with the program, written in the template language from the formats that the makers of
// the models published.
#pragma once

#include <span>
#include <string_view>

namespace infer {

struct BuiltinTemplate {
  std::string_view name;  // as llama.cpp's --chat-template knows it
  std::string_view source;
};

std::span<const BuiltinTemplate> builtin_templates();

}  // namespace infer
