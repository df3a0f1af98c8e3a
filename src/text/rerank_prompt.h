// The input tokens of a rerank model.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/tokenizer.h"

namespace infer {

// Encodes a query and a document, whose relevance the model scores. `form` is the file's
// tokenizer.chat_template.rerank, with the placeholders {query} and {document}; control tokens are recognised only in
// its own text. Without one, both texts are enclosed in the vocabulary's begin, separator and end tokens. Throws what
// Tokenizer::encode() throws.
std::vector<TokenId> encode_rerank_pair(const Tokenizer& tokenizer, const std::optional<std::string>& form,
                                        std::string_view query, std::string_view document);

}  // namespace infer
