// Suggestions for a mistyped word, for error messages.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace infer {

// The words of `known` that differ from `word` by at most three inserted, removed or replaced characters, and by less
// than half of the longer one. Nearest first, ties in the order of `known`, at most five.
std::vector<std::string_view> similar_words(std::string_view word, std::span<const std::string_view> known);

}  // namespace infer
