// Names parts of a template for error messages.
#pragma once

#include <string>

#include "src/text/jinja/syntax.h"

namespace infer::jinja {

std::string describe(const Node& node, const SyntaxTree& tree);

}  // namespace infer::jinja
