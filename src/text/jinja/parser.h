// Parses source into a syntax tree. Every error that can be found without values is reported here.
#pragma once

#include <memory>
#include <string_view>

#include "src/text/jinja/syntax.h"

namespace infer::jinja {

inline constexpr size_t kMaxTemplateBytes = size_t{1} << 20;
inline constexpr size_t kMaxNodes = 150'000;
inline constexpr int kMaxParseDepth = 150;  // nesting of brackets and statements
inline constexpr int kMaxHeight = 500;      // of the tree; a + b + c ... is that deep as well

// Throws TemplateError: kSyntax, or kBudget for a template beyond the limits above.
std::unique_ptr<const SyntaxTree> parse(std::string_view source);

}  // namespace infer::jinja
