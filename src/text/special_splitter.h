// Finds tokens that are written out in a text ("<|im_start|>"). Longer tokens go first over the whole text, then those
// that fit in what is left, leftmost first; of equal texts there is one. Immutable, safe for concurrent use.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/text/byte_trie.h"
#include "src/text/vocabulary.h"

namespace infer {

class SpecialSplitter {
 public:
  // `attributes` (see TokenAttribute) and the texts of `vocabulary` must outlive the object.
  SpecialSplitter(const Vocabulary& vocabulary, const std::vector<uint8_t>& attributes);

  struct Part {
    uint32_t begin, end;  // bytes of plain text; empty for a token
    TokenId token;        // kNoToken: plain text
  };
  // User-defined tokens are always found, control and unknown tokens only if `parse_special`.
  std::vector<Part> split(std::string_view text, bool parse_special) const;

 private:
  const std::vector<uint8_t>& attributes_;
  ByteTrie all_;
  ByteTrie user_defined_;
};

}  // namespace infer
