// Converts JSON into values of the template language.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "src/text/jinja/value.h"

namespace infer::jinja {

// `from_caller`: strings are marked as the caller's, and lists and dicts are immutable. Throws Failure (kBudget) if the
// JSON is nested too deeply or too large.
Value from_json(Heap& heap, const nlohmann::ordered_json& json, bool from_caller, int depth = 0);

}  // namespace infer::jinja
