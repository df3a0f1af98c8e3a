// Converts the text of a prompt to tokens. Thread-safe; both functions throw what Tokenizer::encode throws. If the
// vocabulary adds BOS, there is exactly one, even if the text already spells it out.
#pragma once

#include <string_view>
#include <vector>

#include "src/text/rendered_text.h"
#include "src/text/tokenizer.h"

namespace infer {

// Encodes a rendered chat template. Control tokens are recognised in the template's text, but remain plain text in the
// caller's. Nothing is appended, since the answer follows.
std::vector<TokenId> encode_rendered_prompt(const Tokenizer& tokenizer, const RenderedText& prompt);

// Encodes a prompt for completion, control tokens included, with the special tokens that the vocabulary adds.
std::vector<TokenId> encode_plain_prompt(const Tokenizer& tokenizer, std::string_view prompt);

}  // namespace infer
