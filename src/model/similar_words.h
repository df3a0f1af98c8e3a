// Words that a reader may have meant, for messages about an unknown one.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace infer {

// Those of `known` that differ from `word` by at most three inserted, removed or replaced characters, and by less than
// half of the longer one; the nearest first, in the order of `known` where they are as near, and at most five.
std::vector<std::string_view> similar_words(std::string_view word, std::span<const std::string_view> known);

}  // namespace infer
