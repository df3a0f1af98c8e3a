// Converts JSON into values of the template language.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "src/text/jinja/value.h"

namespace infer::jinja {

// `from_caller`: strings are marked as the caller's, and lists and dicts cannot be changed. Throws Failure (kBudget)
// when the JSON is nested deeper or is larger than the limits allow.
Value from_json(Heap& heap, const nlohmann::ordered_json& json, bool from_caller, int depth = 0);

}  // namespace infer::jinja
