// The tokens that a rerank model reads.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/tokenizer.h"

namespace infer {

// A query and a document, whose relevance the model scores. `form` is the file's tokenizer.chat_template.rerank, with
// {query} and {document} in it; control tokens are recognised in its own text only. Without one, both are encoded with
// the vocabulary's begin, separator and end tokens round them. Throws what Tokenizer::encode() throws.
std::vector<TokenId> encode_rerank_pair(const Tokenizer& tokenizer, const std::optional<std::string>& form,
                                        std::string_view query, std::string_view document);

}  // namespace infer
