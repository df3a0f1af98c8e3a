// The roles of a vocabulary's tokens. Files specify them incompletely, so end of turn, fill-in-the-middle and end of
// generation are also recognised by the tokens' texts, with llama.cpp's lists.
#pragma once

#include <cstdint>
#include <vector>

#include "src/text/text_map.h"
#include "src/text/vocabulary.h"

namespace infer {

// A token may have several: one declared normal may turn out to be a control token as well.
enum TokenAttribute : uint8_t {
  kAttrNormal = 1,
  kAttrUnknown = 2,
  kAttrControl = 4,
  kAttrUserDefined = 8,
  kAttrByte = 16,
  kAttrStripLeft = 32,   // white space before it belongs to it
  kAttrStripRight = 64,  // white space after it belongs to it
};

struct SpecialTokens {
  std::vector<uint8_t> attributes;  // of TokenAttribute, [n_tokens]
  std::vector<TokenId> eog;         // tokens that end generation, ascending
};

// Also fills in the ids of `vocabulary` that the file left open (eot, eom, fim_*).
SpecialTokens find_special_tokens(Vocabulary& vocabulary, const TextMap& index);

}  // namespace infer
