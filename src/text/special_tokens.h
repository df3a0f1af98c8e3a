// What the tokens of a vocabulary are for. Files say it incompletely, so some roles are recognised by a token's text,
// with the same lists of texts as llama.cpp: end of turn, fill-in-the-middle, end of generation.
#pragma once

#include <cstdint>
#include <vector>

#include "src/text/text_map.h"
#include "src/text/vocabulary.h"

namespace infer {

// A token may be several of these at once: one declared normal may turn out to be a control token as well.
enum TokenAttribute : uint8_t {
  kAttrNormal = 1,
  kAttrUnknown = 2,
  kAttrControl = 4,
  kAttrUserDefined = 8,
  kAttrByte = 16,
  kAttrStripLeft = 32,   // white space before it belongs to it
  kAttrStripRight = 64,  // likewise after it
};

struct SpecialTokens {
  std::vector<uint8_t> attributes;  // [n_tokens] of TokenAttribute
  std::vector<TokenId> eog;         // ascending: tokens that end generation
};

// Fills the ids of `vocabulary` that the file left open (eot, eom, fim_*).
SpecialTokens find_special_tokens(Vocabulary& vocabulary, const TextMap& index);

}  // namespace infer
