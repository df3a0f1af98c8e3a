// Finds words in a text byte by byte, with the automaton of A. V. Aho and M. J. Corasick (1975). Immutable.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace infer::grammar {

class WordSearch {
 public:
  // `anchored`: find words only at the start of the text. Empty words are ignored.
  WordSearch(std::span<const std::string> words, bool anchored);

  // State 0 is the start of the text.
  uint32_t n_states() const { return static_cast<uint32_t>(next_.size()); }
  uint32_t next(uint32_t state, uint8_t byte) const { return next_[state][byte]; }
  // Whether a word ends here.
  bool found(uint32_t state) const { return found_[state]; }

 private:
  uint32_t add_state();
  void add_word(std::string_view word);
  void link();

  std::vector<std::array<uint32_t, 256>> next_;  // while words are being added, 0 means none
  std::vector<bool> found_;
};

}  // namespace infer::grammar
