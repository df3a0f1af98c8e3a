// Turns the pieces of a token stream into text that is valid UTF-8 at every step: bytes of an incomplete character are
// held back until it is complete, and each ill-formed maximal subpart becomes one U+FFFD. One object per stream.
#pragma once

#include <string>
#include <string_view>

namespace infer {

class Detokenizer {
 public:
  // The text that `piece` (bytes of one token) completes; may be empty.
  std::string add(std::string_view piece);
  // Returns what is still held back, as U+FFFD, and resets the stream.
  std::string flush();

 private:
  std::string pending_;  // the start of a character, at most 3 bytes
};

}  // namespace infer
