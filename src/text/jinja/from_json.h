// JSON as values of the template language.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "src/text/jinja/value.h"

namespace infer::jinja {

// `from_caller`: texts are marked as the caller's, lists and dicts cannot be changed.
// Throws Failure (kBudget) when it is nested deeper than the limit or larger than memory allows.
Value from_json(Heap& heap, const nlohmann::ordered_json& json, bool from_caller, int depth = 0);

}  // namespace infer::jinja
