// Limits the reasoning at the start of an answer: after a number of tokens, the tag that ends it is the only
// continuation.
#pragma once

#include <cstdint>
#include <memory>

#include "src/text/answer_grammar.h"
#include "src/text/chat_answer.h"
#include "src/text/token_mask.h"

namespace infer {

// A mask that ends the reasoning after `budget` tokens and otherwise allows what `inner` does (null: everything).
// Negative budgets, and answers that cannot begin with reasoning: `inner` itself. The tokenizer must outlive the mask.
std::shared_ptr<const TokenMask> limit_reasoning(std::shared_ptr<const TokenMask> inner, const ReasoningStart& start,
                                                 int64_t budget, const Tokenizer& tokenizer,
                                                 std::shared_ptr<const ChatFormat> format);

}  // namespace infer
