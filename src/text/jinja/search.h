// Substring search in linear time for all inputs.
#pragma once

#include <cstddef>
#include <string_view>

#include "src/text/jinja/heap.h"

namespace infer::jinja {

inline constexpr size_t kNotFound = std::string_view::npos;

// Offset of the first `part` at or after `from`. The work is charged to the heap.
size_t find_first(Heap& heap, std::string_view text, std::string_view part, size_t from = 0);
// Offset of the last `part`.
size_t find_last(Heap& heap, std::string_view text, std::string_view part);

}  // namespace infer::jinja
