// Finds special tokens spelled out in a text ("<|im_start|>"). The longest tokens are matched first, over the whole
// text, then shorter ones in the rest, leftmost first. Of several tokens with equal text, one is used. Immutable;
// thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "src/text/byte_trie.h"
#include "src/text/rendered_text.h"
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
  // User-defined tokens are always found. Control and unknown tokens are found only if `parse_special`, and not where
  // they touch one of the `plain` ranges (ascending, with gaps between).
  std::vector<Part> split(std::string_view text, bool parse_special, std::span<const TextRange> plain = {}) const;

 private:
  const std::vector<uint8_t>& attributes_;
  ByteTrie all_;
  ByteTrie user_defined_;
  // What plain ranges may contain: user-defined tokens that the file does not declare as control tokens, and reasoning
  // tags. Answers show these as text, so they come back in the next prompt.
  ByteTrie harmless_;
};

}  // namespace infer
