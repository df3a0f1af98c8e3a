// From a rendered chat template to tokens. Any thread.
#pragma once

#include <string_view>
#include <vector>

#include "src/text/tokenizer.h"

namespace infer {

// Control tokens in the text are recognised. Where the vocabulary asks for BOS at the beginning there is exactly one,
// whether the template wrote it or not; nothing is added at the end, where the answer follows.
// Throws what Tokenizer::encode throws.
std::vector<TokenId> encode_rendered_prompt(const Tokenizer& tokenizer, std::string_view prompt);

}  // namespace infer
