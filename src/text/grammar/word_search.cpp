#include "src/text/grammar/word_search.h"

#include <deque>
#include <string_view>

namespace infer::grammar {

WordSearch::WordSearch(std::span<const std::string> words, bool anchored) {
  add_state();
  for (const std::string& word : words) {
    if (!word.empty()) add_word(word);
  }
  if (!anchored) {
    link();
    return;
  }
  const uint32_t elsewhere = add_state();
  for (auto& next : next_) {
    for (uint32_t& to : next) to = to == 0 ? elsewhere : to;
  }
}

uint32_t WordSearch::add_state() {
  next_.emplace_back().fill(0);
  found_.push_back(false);
  return n_states() - 1;
}

void WordSearch::add_word(std::string_view word) {
  uint32_t at = 0;
  for (const char c : word) {
    const auto byte = static_cast<uint8_t>(c);
    if (next_[at][byte] == 0) {
      const uint32_t added = add_state();
      next_[at][byte] = added;
    }
    at = next_[at][byte];
  }
  found_[at] = true;
}

// Breadth first: a missing transition is that of the longest proper suffix that is a prefix of some word.
void WordSearch::link() {
  std::vector<uint32_t> suffix(n_states(), 0);
  std::deque<uint32_t> states = {0};
  while (!states.empty()) {
    const uint32_t at = states.front();
    states.pop_front();
    if (found_[suffix[at]]) found_[at] = true;
    for (size_t byte = 0; byte < 256; ++byte) {
      uint32_t& to = next_[at][byte];
      const uint32_t otherwise = at == 0 ? 0 : next_[suffix[at]][byte];
      if (to == 0) {
        to = otherwise;
      } else {
        suffix[to] = otherwise;
        states.push_back(to);
      }
    }
  }
}

}  // namespace infer::grammar
