// From the text of a prompt to its tokens. Any thread; both throw what Tokenizer::encode throws. Where the vocabulary
// asks for BOS at the beginning there is exactly one, whether the text has it written out or not.
#pragma once

#include <string_view>
#include <vector>

#include "src/text/rendered_text.h"
#include "src/text/tokenizer.h"

namespace infer {

// A rendered chat template. Control tokens are recognised in what the template wrote and stay text in what the caller
// wrote; nothing is added at the end, where the answer follows.
std::vector<TokenId> encode_rendered_prompt(const Tokenizer& tokenizer, const RenderedText& prompt);

// A prompt for completion, control tokens included, with the special tokens that the vocabulary asks for.
std::vector<TokenId> encode_plain_prompt(const Tokenizer& tokenizer, std::string_view prompt);

}  // namespace infer
