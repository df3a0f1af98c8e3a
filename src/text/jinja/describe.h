// Parts of a template as error messages name them.
#pragma once

#include <string>

#include "src/text/jinja/syntax.h"

namespace infer::jinja {

std::string describe(const Node& node, const SyntaxTree& tree);

}  // namespace infer::jinja
